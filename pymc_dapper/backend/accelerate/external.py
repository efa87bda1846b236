"""Functions with another calling convention than numba's: kernels, and functions passed to them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, eq=False)
class ExternalKernel:
    """A kernel that is compiled separately and cached on disk; for calls see `addresses`."""

    kernel: Any
    """The kernel."""
    signature: Any
    """Its arguments and result."""
    symbol: str
    """The symbol by which machine code refers to it."""

    def __call__(self, *arguments: Any) -> Any:
        """Call the kernel."""
        return self.kernel(*arguments)


@dataclass(frozen=True, eq=False)
class Given:
    """A function that is passed to a kernel; see `given`."""

    function: Any
    """The function, for numba."""

    def __call__(self, *arguments: Any) -> Any:
        """Call it."""
        return self.function(*arguments)


def written_out(body: str, signature: Any, each: str = "{}", **names: Any) -> Callable:
    """Define a function of a context and of the arguments in a signature.

    ``*arguments`` would make a tuple of all arguments of a kernel; if one is a function, numba
    couldn't cache the result on disk.
    """
    arguments = [f"x{k}" for k in range(len(signature.args))]
    body = body.format(", ".join(map(each.format, arguments)))
    defined = {"__name__": __name__, **names}
    exec(f"def given(context, {', '.join(arguments)}):\n    {body}", defined)
    return defined["given"]
