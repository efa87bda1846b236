"""A long function as several short ones, which it calls one after the other.

numba's time for a function grows faster than its length: each variable that is assigned twice,
such as the sum that a loop adds to, is looked for in all of its lines.
"""

import re
from collections.abc import Sequence

LONGEST = 200
"""Lines of a function, if no loop of it has more."""

_NAME = re.compile(r"\b[a-z]\d+\b")
_ASSIGNED = re.compile(r"^\s*(?:for )?((?:[a-z]\d+(?:, )?)+)(?: = | in )")


def in_pieces(
    name: str, arguments: Sequence[str], lines: Sequence[str], returned: str
) -> dict[str, str]:
    """Write a function as several, by their names: one for each part of its lines, and the whole.

    Parameters
    ----------
    name : str
        Of the function.
    arguments, lines : sequence of str
        Its arguments, and its body. Names are a letter and a number.
    returned : str
        The expression that it returns.
    """
    pieces = _pieces(lines)
    if len(pieces) == 1:
        return {name: _function(name, arguments, [*lines, f"return {returned}"])}
    later = [set(_NAME.findall(returned))]
    for piece in reversed(pieces[1:]):
        later.insert(0, later[0] | set(_NAME.findall("\n".join(piece))))
    known, functions, calls = list(arguments), {}, []
    for number, (piece, needed) in enumerate(zip(pieces, later, strict=True), 1):
        own = f"{name}_{number}"
        used = set(_NAME.findall("\n".join(piece)))
        assigned = dict.fromkeys(x for line in piece for x in _assigned(line))
        takes = [x for x in known if x in used]
        gives = [x for x in assigned if x in needed]
        call = f"{own}({', '.join(takes)})"
        body = [*piece, f"return {', '.join(gives)}"] if gives else piece
        functions[own] = _function(own, takes, body)
        calls.append(f"{', '.join(gives)} = {call}" if gives else call)
        known += [x for x in gives if x not in known]
    return functions | {name: _function(name, arguments, [*calls, f"return {returned}"])}


def _pieces(lines: Sequence[str]) -> list[list[str]]:
    """Cut between statements that are in no loop."""
    pieces: list[list[str]] = [[]]
    for line in lines:
        if len(pieces[-1]) >= LONGEST and not line.startswith(" "):
            pieces.append([])
        pieces[-1].append(line)
    return pieces


def _assigned(line: str) -> list[str]:
    found = _ASSIGNED.match(line)
    return _NAME.findall(found[1]) if found else []


def _function(name: str, arguments: Sequence[str], lines: Sequence[str]) -> str:
    body = "\n".join(f"    {line}" for line in lines)
    return f"def {name}({', '.join(arguments)}):\n{body}"
