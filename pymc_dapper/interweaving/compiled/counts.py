"""Counts as a function of parameters and noise: Poisson, binomial and negative binomial."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import ClassVar

import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.scalar.basic import Composite, ScalarOp, float64, upgrade_to_float64
from pytensor.scalar.math import betainc, gammaincc
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import BinomialRV, NegBinomialRV, PoissonRV
from pytensor.tensor.variable import TensorVariable
from scipy import special

from pymc_dapper.backend.jit import kept_on_disk
from pymc_dapper.backend.numba_ops import compiles, function_of
from pymc_dapper.interweaving.kernels import cdf_of_counts as kernels
from pymc_dapper.interweaving.reading.maps import Parameters, RecordMap, record_map


class _UpperBeta(ScalarOp):
    """SciPy's betaincc, of which PyTensor has no operation."""

    nin, nfunc_spec = 3, ("scipy.special.betaincc", 3, 1)
    output_types_preference = staticmethod(upgrade_to_float64)
    impl = staticmethod(special.betaincc)


@cache
def functions() -> kernels.OfCounts:
    """Make the kernels, with SciPy's functions."""

    def of_scipy(op: ScalarOp, n_inputs: int) -> Callable:
        inputs = [float64() for _ in range(n_inputs)]
        return function_of(Composite(inputs, [op(*inputs)]))

    return kernels.functions_of_counts(
        of_scipy(gammaincc, 2), of_scipy(betainc, 3), of_scipy(_UpperBeta(), 3)
    )


class _OfCounts(ScalarOp):
    """A scalar function of this module's kernels, compiled also when a model is checked."""

    name_of_kernel: ClassVar[str]
    output_types_preference = staticmethod(upgrade_to_float64)

    @classmethod
    def kernel(cls) -> Callable:
        """Return the numba function."""
        return getattr(functions(), cls.name_of_kernel)

    def impl(self, *inputs: float) -> float:
        return kept_on_disk(self.kernel())(*inputs)


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
    BinomialRV: kernels.BINOMIAL,
    NegBinomialRV: kernels.NEGATIVE_BINOMIAL,
}
"""What the kernels call each of these laws, whose parameters are theirs."""


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
