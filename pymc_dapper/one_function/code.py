"""Lines of source in nested loops; an expression is placed where its operands are known."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Term(NamedTuple):
    """A number in the source."""

    text: str
    """A name or a literal."""
    depth: int = 0
    """The number of open loops in which it is known."""
    of_row: bool = False
    """Whether it is the index of a loop over the rows of a small table."""


@dataclass
class Block:
    """Lines in one loop, or those outside of all."""

    lines: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)
    """Names of expressions that are evaluated already."""


class Code:
    """The body of a function."""

    def __init__(self) -> None:
        self._blocks = [Block()]
        self._count = 0
        self.names: dict[str, Any] = {}
        """Objects to which the source refers."""
        self.keys: dict[str, str | None] = {}
        """Cache keys of these; None for objects that can't be cached."""
        self._referred: dict[tuple[str, str | None], str] = {}

    @property
    def lines(self) -> list[str]:
        """All lines."""
        [block] = self._blocks
        return block.lines

    @property
    def depth(self) -> int:
        """Number of loops that are open."""
        return len(self._blocks) - 1

    def new_name(self, kind: str) -> str:
        """Make a name."""
        self._count += 1
        return f"{kind}{self._count}"

    def refer(self, kind: str, value: Any, key: str | None) -> str:
        """Name a constant or a function that the source refers to."""
        if key is not None and (kind, key) in self._referred:
            return self._referred[kind, key]
        name = self._referred[kind, key] = self.new_name(kind)
        self.names[name], self.keys[name] = value, key
        return name

    def add(self, line: str, depth: int | None = None) -> None:
        """Write a line, by default in the innermost loop."""
        self._blocks[self.depth if depth is None else depth].lines.append(line)

    def once(self, line: str) -> None:
        """Write a line, outside of all loops, that has no effect the second time."""
        block = self._blocks[0]
        if line not in block.known:
            block.known[line] = line
            block.lines.append(line)

    def evaluate(self, expression: str, *operands: Term, kind: str = "t") -> Term:
        """Name an expression, in the outermost loop in which its operands are known."""
        depth = max((each.depth for each in operands), default=0)
        block = self._blocks[depth]
        if expression not in block.known:
            block.known[expression] = self.new_name(kind)
            block.lines.append(f"{block.known[expression]} = {expression}")
        return Term(block.known[expression], depth)

    @contextmanager
    def loop(self, length: int | str) -> Iterator[Term]:
        """Open a loop."""
        index = self.new_name("i")
        self._blocks.append(Block())
        yield Term(index, self.depth)
        lines = self._blocks.pop().lines or ["pass"]
        self.add(f"for {index} in range({length}):")
        self._blocks[-1].lines += [f"    {line}" for line in lines]

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Write ahead of the loops that are open."""
        inner, self._blocks = self._blocks, self._blocks[:1]
        yield
        self._blocks = inner
