"""The choice of a candidate is what the graph within it is, and tells its mechanism."""

import numpy as np
import pytensor.tensor as pt

from pymc_dapper.backend.ranks import RankChoice, rank_choice
from pymc_dapper.graphs.rebuild import inline_symbolic_ops


def test_a_choice_is_its_graph_and_tells_its_law():
    number, counts = pt.lscalar(), pt.lvector()
    x = rank_choice(
        "the mechanism", lambda number, counts: counts.sum() * 0.5 + number, number, counts
    )
    assert isinstance(x.owner.op, RankChoice)
    assert x.owner.op.mechanism == "the mechanism"
    [inlined] = inline_symbolic_ops([x])
    given = {number: 3, counts: np.array([1, 4])}
    for graph in (x, inlined):
        assert graph.eval(given, mode="FAST_COMPILE") == 5.5
