"""Log-densities with one term for each entry of a sum."""

import numpy as np
import pytensor
import pytensor.tensor as pt
import pytest

from pymc_dapper.records.reading.entrywise import read_entrywise
from pymc_dapper.records.reading.factors import read_factors

X = pt.matrix("x", shape=(5, 3))
SCALE, SHIFT = pt.vector("scale", shape=(3,)), pt.scalar("shift")
TOTAL = X.sum(axis=0)
AT = {SCALE: np.array([1.0, 2.0, 4.0]), SHIFT: np.array(0.5)}
SUM = np.array([3.0, -1.0, 2.0])

ENTRYWISE = {
    "independent noise": -pt.abs(TOTAL - SHIFT).sum(),
    "scales": (-pt.abs(TOTAL - 1.0) / SCALE - pt.log(SCALE)).sum(),
    "some entries by themselves": -(TOTAL**2).sum() / 2 + SHIFT,
    "a look-up": pt.switch(TOTAL > SHIFT, 0.0, -np.arange(3.0)).sum(),
}


@pytest.mark.parametrize("name", ENTRYWISE)
def test_terms_and_offset_add_up_to_the_log_density(name):
    graph = ENTRYWISE[name]
    factors = read_factors({"privacy": graph}, [X])
    found = read_entrywise(factors)
    options = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    given = list(AT)
    context = pytensor.function(given, [*found.context, found.offset], **options)(*AT.values())
    *context, offset = context
    term = pytensor.function([found.entry, *found.values], found.term, **options)
    terms = [term(SUM[k], *(values[k] for values in context)) for k in range(3)]
    expected = factors[0].log_density.eval({factors[0].sums[0].total: SUM, **AT}, **options)
    np.testing.assert_allclose(sum(terms) + offset, expected)


@pytest.mark.parametrize(
    "graph",
    [-(TOTAL.sum() ** 2), -pt.sqrt((TOTAL**2).sum()), -pt.abs(TOTAL[0] - TOTAL[1]), TOTAL.max()],
    ids=["square of a sum", "norm", "difference", "largest"],
)
def test_what_combines_entries_is_not(graph):
    assert read_entrywise(read_factors({"privacy": graph}, [X])) is None
