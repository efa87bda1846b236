"""Compiled functions that are called once per draw, without PyTensor's overhead per call."""

import warnings
from collections.abc import Callable, Sequence
from functools import cache
from inspect import signature
from pathlib import Path
from traceback import walk_tb
from typing import Any

import numpy as np
import pymc as pm
from pytensor import In, Out, config
from pytensor.compile.mode import Mode, get_mode
from pytensor.graph import Variable
from pytensor.link.numba.cache import compile_numba_function_src
from pytensor.link.numba.dispatch.basic import numba_njit
from pytensor.link.numba.linker import NumbaLinker
from pytensor.tensor.random.type import RandomGeneratorType

from pymc_dapper.backend import accelerate
from pymc_dapper.backend.accelerate import switch
from pymc_dapper.backend.generators import by_address
from pymc_dapper.backend.kernel_key import kernel_key


class JitFunction:
    """A function compiled by PyTensor's numba backend, called directly.

    Arrays are passed as they are: in the dtype of the inputs, C-contiguous, and neither copied nor
    checked. A random generator comes first, and is advanced in place. Pickling recompiles, from
    PyTensor's cache.

    Parameters
    ----------
    inputs, outputs : sequence of Variable
        The graph. It must hold no shared variables.
    model : Model
        The model the graph comes from; its ``check_bounds`` is heeded.
    compile_kwargs : dict
        Passed on to PyMC's ``compile``.

    Attributes
    ----------
    jitted : callable
        What was compiled. It may take a generator's addresses in its place.
    """

    def __init__(
        self,
        inputs: Sequence[Variable],
        outputs: Sequence[Variable],
        model: pm.Model,
        compile_kwargs: dict[str, Any],
    ):
        takes, outputs = by_address(inputs, outputs)
        specs = [In(x, borrow=True, mutable=isinstance(x.type, RandomGeneratorType)) for x in takes]
        self._by_address = bool(takes) and takes[0].type != inputs[0].type
        results = [Out(x, borrow=True) for x in outputs]
        with model, warnings.catch_warnings():
            # A distribution that numba can't draw from is drawn from in Python, only slower.
            warnings.filterwarnings("ignore", message="Numba will use object mode")
            self._function = pm.compile(
                specs,
                results,
                on_unused_input="ignore",
                **{**compile_kwargs, "mode": numba_mode(compile_kwargs.get("mode"))},
            )
        self.jitted = self._function.vm.jit_fn

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """Evaluate the graph's outputs."""
        try:
            if not self._by_address:
                return self.jitted(*arguments)
            rng, *others = arguments
            return self.jitted(self.handed(rng), *others)
        except SystemError as error:
            raise_interrupt(error)
            raise

    def handed(self, rng: np.random.Generator) -> Any:
        """Return what compiled code is handed for a generator: itself, or its address."""
        return switch.found()["generators"].address_of(rng) if self._by_address else rng

    def __getstate__(self) -> dict[str, Any]:
        """Leave the machine code behind; what can't be accelerated here can't be elsewhere."""
        state = {"_function": self._function, "_by_address": self._by_address}
        return {**state, "given_up": switch.failed}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Compile again."""
        switch.failed |= state["given_up"]
        self._function, self._by_address = state["_function"], state["_by_address"]
        self.jitted = self._function.vm.jit_fn


def raise_interrupt(error: BaseException) -> None:
    """Raise KeyboardInterrupt if it came while numba made arrays: a SystemError has it inside."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    if cause is not None:
        raise KeyboardInterrupt from error


@cache
def kept_on_disk(kernel: Any) -> Callable:
    """Make a function of a kernel whose machine code is cached on disk separately, for all models.

    For a large kernel that isn't compiled into a model's function. Python calls it, too, when
    models are checked: running its source for each entry of an array would be too slow.
    """
    names = ", ".join(signature(kernel.py_func).parameters)
    function = compile_numba_function_src(
        f"def kept({names}): return kernel({names})",
        "kept",
        globals() | {"kernel": kernel},
        cache_key=f"{kernel_key(kernel)}_kept_in_{__name__}",
    )
    # With the kernel's own arithmetic, and not with the liberties that PyTensor takes; and other
    # threads of Python's go on meanwhile.
    kept = numba_njit(
        function, final_function=True, cache=config.numba__cache, fastmath=False, nogil=True
    )
    return accelerate.outermost(kept)


def numba_mode(mode: Mode | str | None) -> Mode:
    """Check that a compilation mode is one of numba's; the package's own if none is given."""
    whole = accelerate.whole_graphs() if mode is None else None
    resolved = get_mode(mode or "NUMBA") if whole is None else whole.ONE_FUNCTION
    if not isinstance(resolved.linker, NumbaLinker):
        raise ValueError(
            f"compile_kwargs: the mode {mode!r} doesn't compile with numba, which the record sweep "
            "is written for. Leave the mode out, or pass mode='NUMBA'"
        )
    return resolved


def numba_by_default() -> bool:
    """Whether PyTensor compiles with numba because nobody has chosen anything else."""
    return config.mode == "Mode" and isinstance(get_mode(None).linker, NumbaLinker)


def with_parameter_checks(mode: Mode, model: pm.Model) -> Mode:
    """Treat invalid parameters as PyMC's ``compile`` does: -inf, or unchecked if so asked."""
    if model.check_bounds:
        return mode.including("local_check_parameter_to_ninf_switch")
    return mode.including("local_remove_check_parameter")


def cache_folder(error: Exception) -> Path | None:
    """Return the folder that numba loaded compiled code from, or kept it in, if that failed."""
    for frame, _ in walk_tb(error.__traceback__):
        file = Path(frame.f_code.co_filename)
        if file.parts[-3:] != ("numba", "core", "caching.py"):
            continue
        holder: Any = frame.f_locals.get("self")
        # Loading needs correct files; all other errors are of reading and writing.
        is_load = frame.f_code.co_name in ("_load_overload", "_load_index")
        if (is_load or isinstance(error, OSError)) and hasattr(holder, "_cache_path"):
            return Path(holder._cache_path)
    return None
