"""Loops of the same length become one.

So numba has fewer to compile, and what several have in common is worked out once. A loop is joined
to the last one of its length before it. The lines between them move ahead of both, or behind them
if they depend on the first. No line moves past another one that it depends on. Loops around other
loops are joined to such alone: LLVM vectorises the innermost ones.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

NAME = re.compile(r"\b[a-z]\d+\b")
HEAD = re.compile(r"for (\w+) in range\((.*)\):")
PLACE = re.compile(r"(\w+)\[([^]]*)\]")


class Step:
    """A line, or a loop with its body; and the names that it reads or writes."""

    def __init__(self, text: str, body: "Sequence[Step]" = ()):
        self.text, self.body = text, body
        head = HEAD.fullmatch(text)
        self.index, self.length = head.groups() if head else ("", "")
        self.kind = self.length, any(step.length for step in body)
        self.is_check = text.startswith(("if ", "raise "))
        left, assigned, right = ("", "", text) if self.is_check else text.partition(" = ")
        changed = left if assigned else self.index
        self.writes = {name for name, _ in PLACE.findall(changed)} or {*NAME.findall(changed)}
        self.reads = {*NAME.findall(text)}
        if re.search(r"\b[fr]\d", right or left):  # a function may change an array
            self.writes |= {name for name in self.reads if name[0] in "ax"}
        for step in body:
            self.reads, self.writes = self.reads | step.reads, self.writes | step.writes

    def lines(self) -> Iterator[str]:
        """Write the lines."""
        yield self.text
        yield from (f"    {line}" for step in self.body for line in step.lines())

    def meets(self, other: "Step") -> set[str]:
        """Name what one of two writes, and the other writes or reads."""
        return (self.writes & (other.reads | other.writes)) | (other.writes & self.reads)


def fused(lines: list[str]) -> list[str]:
    """Join loops in the lines of a function, and leave out lengths that nothing uses."""
    lines = [line for step in _joined(_parsed([*lines])) for line in step.lines()]
    uses = Counter(NAME.findall("\n".join(lines)))
    return [line for line in lines if line[0] != "n" or uses[line.partition(" ")[0]] > 1]


def _parsed(lines: list[str], indent: str = "") -> list[Step]:
    """Take the lines of one body off a list, and return its steps."""
    steps = []
    while lines and lines[0].startswith(indent):
        text = lines.pop(0).removeprefix(indent)
        steps.append(Step(text, _parsed(lines, indent + "    ") if HEAD.fullmatch(text) else ()))
    return steps


def _joined(steps: Sequence[Step]) -> list[Step]:
    """Join loops in a body."""
    done: list[Step] = []
    for step in steps:
        same = [k for k, x in enumerate(done) if x.kind == step.kind] if step.length else []
        joined = _join(done[same[-1]], done[same[-1] + 1 :], step) if same else None
        done[same[-1] if joined else len(done) :] = joined or [step]
    return [Step(step.text, _joined(step.body)) for step in done]


def _join(first: Step, between: list[Step], second: Step) -> list[Step] | None:
    """Join two loops, and place the steps between them; None if that isn't possible."""
    ahead: list[Step] = []
    behind = [first]
    for step in between:
        (behind if any(step.meets(each) for each in behind) else ahead).append(step)
    del behind[0]
    if any(step.is_check or step.meets(second) for step in behind):
        return None
    if not all(_by_entry(name, first, second) for name in first.meets(second)):
        return None
    body = _renamed([*second.lines()][1:], {second.index: first.index})
    lines = _once([line[4:] for line in [*[*first.lines()][1:], *body]])
    return [*ahead, Step(first.text, _parsed(lines)), *behind]


def _by_entry(name: str, first: Step, second: Step) -> bool:
    """Whether each round of two loops uses entries of an array that no other round uses."""
    axes: set[int] | None = None
    for loop in (first, second):
        text = "\n".join(loop.lines())
        places = [at.split(", ") for array, at in PLACE.findall(text) if array == name]
        if len(places) < len(re.findall(rf"\b{name}\b", text)):
            return False
        for index in places:
            own = {k for k, each in enumerate(index) if each == loop.index}
            axes = own if axes is None else axes & own
    return bool(axes)


def _renamed(lines: list[str], names: dict[str, str]) -> list[str]:
    return [NAME.sub(lambda found: names.get(found[0], found[0]), line) for line in lines]


def _once(lines: list[str]) -> list[str]:
    """Leave out numbers of a body that it works out already, outside of inner loops."""
    changed = {name for line in lines for name, _ in PLACE.findall(line.partition(" = ")[0])}
    known: dict[str, str] = {}
    names: dict[str, str] = {}
    kept = []
    for line in lines:
        [new] = _renamed([line], names)
        name, _, expression = new.partition(" = ")
        if name[0] == "t" and not changed & {*NAME.findall(expression)}:
            if expression in known:
                names[name] = known[expression]
                continue
            known[expression] = name
        kept.append(new)
    return kept
