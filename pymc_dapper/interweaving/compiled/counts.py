"""Counts as a function of parameters and noise: Poisson, binomial, negative binomial, multinomial.

A multinomial's categories are split into halves again and again. Given how many are in both, those
in one half are binomial.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import ClassVar

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Apply, Op
from pytensor.scalar.basic import Composite, ScalarOp, float64, upgrade_to_float64
from pytensor.scalar.math import betainc, gammaincc
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import BinomialRV, MultinomialRV, NegBinomialRV, PoissonRV
from pytensor.tensor.variable import TensorVariable
from scipy import special

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.backend.jit import kept_on_disk
from pymc_dapper.backend.numba_ops import compiles, function_of
from pymc_dapper.interweaving.kernels import cdf_of_counts as kernels
from pymc_dapper.interweaving.kernels.cdf_of_counts import BINOMIAL
from pymc_dapper.interweaving.reading.maps import (
    NoRecordMapError,
    Parameters,
    RecordMap,
    parameters_of,
    record_map,
)


class _UpperBeta(ScalarOp):
    """SciPy's betaincc, of which PyTensor has no operation."""

    nin, nfunc_spec = 3, ("scipy.special.betaincc", 3, 1)
    output_types_preference = staticmethod(upgrade_to_float64)
    impl = staticmethod(special.betaincc)


@cache
def functions() -> kernels.OfCounts:
    """Make the kernels, with SciPy's functions as numba can call them."""

    def of_scipy(op: ScalarOp, n_inputs: int) -> Callable:
        inputs = [float64() for _ in range(n_inputs)]
        return function_of(Composite(inputs, [op(*inputs)]))

    return kernels.functions_of_counts(
        of_scipy(gammaincc, 2), of_scipy(betainc, 3), of_scipy(_UpperBeta(), 3), kernels.FEW
    )


@cache
def functions_in_python() -> kernels.OfCounts:
    """Make the kernels for Python, where a sum takes longer than SciPy's functions."""
    of_scipy = special.gammaincc, special.betainc, special.betaincc
    made = kernels.functions_of_counts(*of_scipy, kernels.FEW_IN_PYTHON)
    return kernels.OfCounts(*map(in_python, made))


COMPILED_AFTER = 20_000
"""Python takes as long for so many counts as numba takes to compile a kernel."""


class _OfCounts(ScalarOp):
    """A scalar function of this module's kernels.

    Checks of a model evaluate it in Python; those of many counts have it compiled.
    """

    name_of_kernel: ClassVar[str]
    evaluated: ClassVar[int] = 0
    """How many counts were evaluated in Python."""
    output_types_preference = staticmethod(upgrade_to_float64)

    @staticmethod
    def nanoseconds(largest: float) -> float:
        """Count the cost of counts up to ``largest``, for `graphs.costs`: small ones are sums."""
        return min(100.0 + 10.0 * largest, 10_000.0)

    @classmethod
    def kernel(cls) -> Callable:
        """Return the numba function."""
        return getattr(functions(), cls.name_of_kernel)

    def impl(self, *inputs: float) -> float:
        if type(self).evaluated >= COMPILED_AFTER:
            return kept_on_disk(self.kernel())(*inputs)
        type(self).evaluated += 1
        return getattr(functions_in_python(), self.name_of_kernel)(*inputs)


class CountNoise(_OfCounts):
    """See `pymc_dapper.interweaving.kernels.cdf_of_counts.OfCounts`."""

    nin = 5
    name_of_kernel = "noise"


class CountQuantile(_OfCounts):
    """See `pymc_dapper.interweaving.kernels.cdf_of_counts.OfCounts`."""

    nin = 4
    name_of_kernel = "quantile"


@compiles(CountNoise)
@compiles(CountQuantile)
def _kernel(op: _OfCounts) -> Callable:
    return kept_on_disk(op.kernel())


count_noise = Elemwise(CountNoise())
count_quantile = Elemwise(CountQuantile())


FAMILIES = {
    PoissonRV: kernels.POISSON,
    BinomialRV: BINOMIAL,
    NegBinomialRV: kernels.NEGATIVE_BINOMIAL,
}
"""The kernels' name of each of these laws, which take the kernels' parameters."""


@record_map.register(PoissonRV)
@record_map.register(BinomialRV)
@record_map.register(NegBinomialRV)
def _count_map(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """Map by the kernels' parameters.

    All of it in double precision, so that the kernels are compiled for nothing else.
    """

    def of_family(parameters: Parameters) -> list[TensorVariable]:
        first, second = (*parameters, pt.zeros(()))[:2]
        return [pt.cast(x, "float64") for x in (FAMILIES[type(op)], first, second)]

    def noise(x: TensorVariable, parameters: Parameters, v: TensorVariable) -> TensorVariable:
        return count_noise(pt.cast(x, "float64"), v, *of_family(parameters))

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        return count_quantile(u, *of_family(parameters))

    return RecordMap(noise, records)


@record_map.register(MultinomialRV)
def _multinomial_map(op: Op, node: Apply, moved: Sequence[bool]) -> RecordMap:
    """Map how many are in the first of two halves, for all halves."""
    if parameters_of(node)[1].type.shape[-1] is None:
        raise NoRecordMapError("the number of categories isn't known")

    def chances(p: TensorVariable) -> TensorVariable:
        first, both = _halves(_levels(p))
        return pt.switch(pt.gt(first, 0), pt.minimum(first / both, np.nextafter(1, 0)), 0.0)

    def noise(x: TensorVariable, parameters: Parameters, v: TensorVariable) -> TensorVariable:
        first, both = _halves(_levels(pt.cast(x, "float64")))
        of_halves = count_noise(first, v[..., 1:], BINOMIAL, both, chances(parameters[1]))
        return pt.concatenate([v[..., :1], of_halves], axis=-1)

    def records(u: TensorVariable, parameters: Parameters) -> TensorVariable:
        n, p = parameters
        counts, chance, u = n[..., None] + pt.zeros_like(u[..., :1]), chances(p), u[..., 1:]
        for level in _levels(p):
            n_halved = level.type.shape[-1] // 2
            both = counts[..., :n_halved]
            first = count_quantile(u[..., :n_halved], BINOMIAL, both, chance[..., :n_halved])
            halves = pt.stack([first, both - first], axis=-1).reshape((*both.shape[:-1], -1))
            counts = pt.concatenate([halves, counts[..., n_halved:]], axis=-1)
            chance, u = chance[..., n_halved:], u[..., n_halved:]
        return counts

    return RecordMap(noise, records)


def _levels(x: TensorVariable) -> list[TensorVariable]:
    """Add up neighbours on the last axis, again and again until two are left: these come first."""
    levels = [x]
    while (length := levels[0].type.shape[-1]) > 2:
        both = levels[0][..., : length // 2 * 2 : 2] + levels[0][..., 1::2]
        levels.insert(0, pt.concatenate([both, levels[0][..., length - length % 2 :]], axis=-1))
    return levels


def _halves(levels: Sequence[TensorVariable]) -> tuple[TensorVariable, TensorVariable]:
    """Return the first of each two neighbours, and their sum; level after level."""
    first, second = (
        pt.concatenate([x[..., k : x.type.shape[-1] // 2 * 2 : 2] for x in levels], axis=-1)
        for k in (0, 1)
    )
    return first, first + second
