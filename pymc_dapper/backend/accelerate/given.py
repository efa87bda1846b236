"""A function that a kernel is given, and that is compiled into it.

numba compiles a function again for each function that it is passed, and refers to the latter by its
address in this process, so the result can't be cached on disk. Here the type alone identifies the
function, and nothing is passed. This uses numba's documented extension types, except for two of its
own types. Without them, functions are passed as numba passes them.
"""

from typing import Any

from numba import typeof, types
from numba.extending import models, register_model, typeof_impl

from pymc_dapper.backend.accelerate.external import Given


class GivenType(types.Callable, types.Dummy):
    """Type of a function, which is called as the function is."""

    def __init__(self, of: types.Dispatcher):
        self.of = of
        super().__init__(name=f"Given({of})")

    @property
    def key(self) -> Any:
        """Identifies it; names don't, after a function is deleted."""
        return self.of

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Have the function compiled for these arguments."""
        return self.of.get_call_type(context, args, kws)

    def get_call_signatures(self) -> Any:
        """Return those that it is compiled for."""
        return self.of.get_call_signatures()

    def get_impl_key(self, sig: Any) -> Any:
        """Return a function that calls it."""
        return self.of.get_impl_key(sig)


@typeof_impl.register(Given)
def _type_of(value: Given, _: Any) -> GivenType:
    return GivenType(typeof(value.function))


register_model(GivenType)(models.OpaqueModel)
