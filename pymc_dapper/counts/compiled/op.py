"""The sweep over a table of counts as a PyTensor operation.

As with the record sweep, the kernel and the model's log-density are compiled together, under a
cache key that holds both.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from pytensor.graph import Apply, Variable
from pytensor.scalar.basic import Composite

from pymc_dapper.backend.accelerate import switch
from pymc_dapper.backend.draws import fill_uniform
from pymc_dapper.backend.in_python import KernelOp
from pymc_dapper.backend.internals import FrozenFunctionGraph
from pymc_dapper.backend.numba_ops import compiles, from_source, function_of, given_once, numba_njit
from pymc_dapper.counts.kernels import schedule
from pymc_dapper.counts.kernels.draws import Draws
from pymc_dapper.counts.kernels.line import sum_of_terms
from pymc_dapper.counts.kernels.schedule import terms_of, unpack
from pymc_dapper.counts.kernels.sweep import sweep_counts
from pymc_dapper.graphs.asked_once import answer
from pymc_dapper.kernels.arrays import copy_into


class TermFunction(NamedTuple):
    """A function that several terms of the log-density share."""

    op: Composite
    """The function, of float64 scalars: linear functions of the counts, then the context."""
    n_linear: int
    """Number of arguments that are linear functions of the counts."""
    n_fixed: int
    """Number of arguments from the context."""


class Kinds(NamedTuple):
    """The kinds of moves that a model has, besides single cells and directions."""

    grids: bool = False
    linked: bool = False
    joint: bool = False


class CountSweep(KernelOp):
    """Updates of a table of counts, line by line.

    Parameters
    ----------
    functions : tuple of TermFunction
        Functions of the terms of the log-density.
    whole : FrozenFunctionGraph, optional
        The rest of the log-density, as a scalar. Inputs are a vector of linear functions and the
        rest of the context. Already rewritten for the numba backend.
    first_whole : int
        The first linear function in ``whole``; all later ones are in it, too.
    kinds : Kinds
        The kinds of moves that are compiled.
    """

    __props__ = ("functions", "whole", "first_whole", "kinds")
    by_address = True

    functions: tuple[TermFunction, ...]
    whole: FrozenFunctionGraph | None
    first_whole: int
    kinds: Kinds

    def make_node(self, *inputs: Variable) -> Apply:
        """Apply the operation to a generator and the kernel's other inputs.

        These are counts; structure, schedule and curvatures (packed integers and numbers); and
        context. The outputs are the generator, the counts, and a vector with the number of random
        numbers used and the kernel's other results.
        """
        rng, counts, _, numbers, *_ = inputs
        return Apply(self, list(inputs), [rng.type(), counts.type(), numbers.type()])


class Places(NamedTuple):
    """Terms of a log-density by what sees them, such as cells or sums of cells."""

    starts: np.ndarray
    """Int64, shape (number of places + 1,): the start of each place's terms among these."""
    terms: np.ndarray
    """Int64: the terms."""
    slopes: np.ndarray
    """Float64, shape (number of terms of the log-density,): the factor of the count in each."""
    zeros: np.ndarray
    """Float64, shape (number of terms of the log-density,): zeros."""
    kinds: np.ndarray
    first: np.ndarray
    contexts: np.ndarray
    """Int64, shape (number of terms of the log-density,): as in
    `pymc_dapper.counts.kernels.line.Structure`."""


class OfTerms(KernelOp):
    """An operation that evaluates terms of a log-density, some of them at a time.

    Parameters
    ----------
    functions : tuple of TermFunction
        Their functions, each of one sum of cells.
    """

    __props__ = ("functions",)
    functions: tuple[TermFunction, ...]

    def log_weight(self) -> Callable:
        """Make the function of the terms that see one place, by its number, and of its count.

        Its context is that of the terms, and the arrays of :class:`Places`.
        """
        log_density = compile_log_density(CountSweep(self.functions, None, 0, Kinds()))

        @numba_njit
        def log_weight(context, place, count):  # type: ignore[no-untyped-def]
            at = Places(*context[1:])
            seen = at.terms[at.starts[place] : at.starts[place + 1]]
            of_terms = (at.kinds, at.first, at.contexts), context[:1]
            return log_density(of_terms, at.zeros, at.slopes, seen, seen.size, False, count)

        return log_weight

    def given_to(self, kernel: Any, returned: Any, *takes: Any) -> Callable:
        """Compile a kernel once for all models, and give it the function of this model's terms.

        While a model's steps are built, operations with the same terms get the same function.
        """

        def give() -> Callable:
            return given_once(kernel, self.log_weight(), LOG_WEIGHT, returned(*takes))

        return answer(None, (kernel, self.functions, switch.failed), give)


def compile_log_density(op: CountSweep) -> Callable:
    """Compile the log-density in the form that the kernel takes.

    That is the one in :func:`pymc_dapper.counts.kernels.line.log_density_at`.
    """
    names = {f"function_{k}": function_of(each.op) for k, each in enumerate(op.functions)}
    log_term = from_source(_term_source(op.functions), "log_term", **names)
    # Inlined, like all functions of arrays: counting references would cost more than a term.
    log_term = numba_njit(log_term, inline="always")

    if op.whole is None:

        @numba_njit
        def log_whole(values, slopes, t, context):  # type: ignore[no-untyped-def]
            return 0.0
    else:
        model_log_density = function_of(op.whole, "count_log_density")
        first = op.first_whole

        @numba_njit
        def log_whole(values, slopes, t, context):  # type: ignore[no-untyped-def]
            return model_log_density(values[first:] + t * slopes[first:], *context[1:]).item()

    @numba_njit(inline="always", forceinline=True)
    def log_density(context, values, slopes, terms, n_terms, whole, t):  # type: ignore[no-untyped-def]
        return sum_of_terms(log_term, log_whole, context, values, slopes, terms, n_terms, whole, t)

    return log_density


def _term_source(functions: tuple[TermFunction, ...]) -> str:
    """Write the function that looks up a term's function and calls it."""
    lines = ["def log_term(kind, first, start, values, slopes, t, context):"]
    lines += ["    x = values[first] + t * slopes[first]"]
    for k, function in enumerate(functions):
        arguments = ["x"] + [
            f"values[first + {i}] + t * slopes[first + {i}]" for i in range(1, function.n_linear)
        ]
        arguments += [f"context[0][start + {i}]" for i in range(function.n_fixed)]
        lines += [f"    if kind == {k}:", f"        return function_{k}({', '.join(arguments)})"]
    return "\n".join([*lines, "    return 0.0"])


INTEGERS, NUMBERS = types.int64[::1], types.float64[::1]
LOG_DENSITY = types.float64(*(NUMBERS, NUMBERS, INTEGERS, types.int64, types.boolean, types.int64))
"""Types of a log-density's arguments besides its context, and of its result."""
LOG_WEIGHT = types.float64(types.int64, types.int64)
"""The same, of terms that see one place."""


def compiled_once(kinds: Kinds, log_density: Callable) -> Callable:
    """Compile the sweep over these kinds of moves once for all models; give it a log-density."""
    grids = schedule.unpack_grids if kinds.grids else schedule.none
    linked = schedule.unpack_linked if kinds.linked else schedule.none
    joint = schedule.unpack_joint if kinds.joint else schedule.none

    @njit
    def swept(log_density, context, uniforms, counts, integers, numbers):  # type: ignore[no-untyped-def]
        structure, lines, curvatures = unpack(integers, numbers)
        draws = Draws(uniforms, np.zeros(1, dtype=np.int64))
        after = sweep_counts(
            log_density, context, structure, lines, grids(integers, numbers),
            linked(integers, numbers), joint(integers, numbers), integers[-3:], counts, curvatures,
            draws,
        )  # fmt: skip
        found = np.empty(5 + after.curvatures.size)
        found[0] = draws.used[0]
        found[1], found[2] = after.moved, after.n_able
        found[3], found[4] = after.log_density, after.gain
        copy_into(found, 5, after.curvatures)
        return after.counts, found

    returned = types.Tuple((INTEGERS, NUMBERS))
    takes = NUMBERS, INTEGERS, INTEGERS, NUMBERS
    return given_once(swept, log_density, LOG_DENSITY, returned(*takes))


@compiles(CountSweep)
def _count_sweep(op: CountSweep) -> Callable:
    swept = compiled_once(op.kinds, compile_log_density(op))

    @numba_njit
    def count_sweep(rng, counts, integers, numbers, *context):  # type: ignore[no-untyped-def]
        uniforms, used = np.empty(0), integers[-1]
        while True:
            # If they weren't enough, the sweep is repeated with the same numbers and more of them.
            uniforms = longer(rng, uniforms, used)
            after, found = swept((terms_of(integers), context), uniforms, counts, integers, numbers)
            used = int(found[0])
            if used <= uniforms.size:
                return rng, after, found

    return count_sweep


@njit
def longer(rng: Any, uniforms: np.ndarray, n: int) -> np.ndarray:
    """Return uniform random numbers and n more, as NumPy's generator draws them."""
    joined = np.empty(uniforms.size + n)
    for k in range(uniforms.size):
        joined[k] = uniforms[k]
    fill_uniform(rng, 1, joined[uniforms.size :])
    return joined
