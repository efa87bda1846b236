"""Log-densities as sums of terms."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper.graphs.terms import walk
from pymc_dapper.graphs.terms.roles import Mixed, Reduced


def test_many_terms_are_not_repeated_for_each_entry(monkeypatch):
    x = pt.vector("x", shape=(4,))
    repeated = pt.switch(pt.any(pt.eq(x, 1.0)), -np.inf, x**2)
    for most, kind in ((16, Reduced), (15, Mixed)):
        monkeypatch.setattr(walk, "MOST_ENTRIES", most)
        assert isinstance(walk.CountWalk([x], {}).follow(repeated), kind)


@pytest.mark.parametrize("dtype", ["bool", "uint8"])
def test_terms_of_a_sum_are_of_its_type(dtype):
    x = pt.vector("x", shape=(2,), dtype="int64")
    count = pt.gt(x, 2).astype(dtype).sum()
    for graph, expected in ((1.5 - count, -1), (count * np.uint8(2) * np.uint8(200), 400)):
        [part] = walk.CountWalk([x], {}).follow(graph).parts
        [entry] = part.terms.linear
        others = {y: float(v.eval(mode="FAST_COMPILE")[0]) for y, v in part.terms.fixed.items()}
        assert part.terms.function.eval({entry: 3, **others}, mode="FAST_COMPILE") == expected
