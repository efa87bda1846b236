"""Functions that aren't called as numba calls others: a kernel, and what a kernel is given."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class Outside:
    """A kernel that is compiled by itself, and kept on disk; `addresses` says how it is called."""

    kernel: Any
    """The kernel."""
    signature: Any
    """What it takes and returns."""
    symbol: str
    """What machine code refers to it by."""

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel."""
        return self.kernel(*arguments)


@dataclass(frozen=True, eq=False)
class Given:
    """A function that a kernel is given; `given` says how it is passed."""

    function: Any
    """The function, for numba."""

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        return self.function(*arguments)


def written_out(body: str, signature: Any, each: str = "{}", **names: Any) -> Callable:
    """Define a function of a context and of as many arguments as a signature has.

    ``*arguments`` would make a tuple of all that a kernel is called with: of a function among it,
    numba then makes one that it can't keep on disk.
    """
    arguments = [f"x{k}" for k in range(len(signature.args))]
    body = body.format(", ".join(map(each.format, arguments)))
    defined = {"__name__": __name__, **names}
    exec(f"def given(context, {', '.join(arguments)}):\n    {body}", defined)
    given: Callable = defined["given"]
    return given
