"""Counts as a function of parameters and noise: Poisson, binomial and negative binomial."""

from collections.abc import Callable, Sequence
from functools import cache
from itertools import count
from typing import Any, ClassVar

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.scalar.basic import ScalarOp, upgrade_to_float64
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.basic import BinomialRV, NegBinomialRV, PoissonRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.backend.jit import kept_on_disk
from pymc_dapper.backend.numba_ops import compiles
from pymc_dapper.interweaving.kernels import cdf_of_counts as kernels
from pymc_dapper.interweaving.reading.maps import Parameters, RecordMap, record_map

NUMBER = count()
"""How many evaluations there have been."""
FEW = 10_000
"""Fewer evaluations than this take less time than compiling a kernel, if each takes few steps."""
FEW_STEPS = 200


class _OfCounts(ScalarOp):
    """A scalar function of this module's kernels.

    When a model is checked, it is evaluated from the kernel's source, and compiled only if that
    would take longer than compiling.
    """

    kernel: ClassVar[Any]
    output_types_preference = staticmethod(upgrade_to_float64)

    def impl(self, *inputs: float) -> float:
        quick = next(NUMBER) < FEW and _takes_few_steps(*inputs[-3:])
        evaluate = _source(self.kernel) if quick else kept_on_disk(self.kernel)
        with np.errstate(all="ignore"):
            return evaluate(*inputs)


@cache
def _source(kernel: Callable) -> Callable:
    return in_python(kernel)


def _takes_few_steps(family: float, first: float, second: float) -> bool:
    if not _source(kernels.is_possible)(family, first, second):
        return True
    mean, sd = _source(kernels.moments)(family, first, second)
    return bool(mean + 10 * sd <= FEW_STEPS)


class CountNoise(_OfCounts):
    """See :func:`pymc_dapper.interweaving.kernels.cdf_of_counts.count_noise`."""

    nin = 5
    kernel = staticmethod(kernels.count_noise)


class CountQuantile(_OfCounts):
    """See :func:`pymc_dapper.interweaving.kernels.cdf_of_counts.count_quantile`."""

    nin = 4
    kernel = staticmethod(kernels.count_quantile)


@compiles(CountNoise)
@compiles(CountQuantile)
def _kernel(op: _OfCounts) -> Callable:
    return kept_on_disk(op.kernel)


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
