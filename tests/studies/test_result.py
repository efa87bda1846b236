"""Results of cells as labelled arrays."""

import numpy as np
import pymc as pm
import pytest

from tests.studies import functions
from tests.studies.runs import in_this_process

pytestmark = pytest.mark.long


def vector(released, share):
    with pm.Model(coords={"answer": ["no", "yes"]}) as model:
        count = int(np.clip(released["count"], 0, functions.N))
        p = pm.Dirichlet("p", np.ones(2), dims="answer")
        pm.Multinomial("answers", functions.N, p, observed=[functions.N - count, count])
        pm.Deterministic("odds", p[1] / p[0])
        pm.Deterministic("pair", pm.math.stack([p, p]))
    return model


def simulate_vector(rng, share):
    released, _ = functions.simulate(rng, share)
    p = np.array([1 - share, share])
    return released, {"p": p, "pair": np.stack([p, p]), "unknown to the model": 1}


def test_parameters_keep_their_dims():
    result = in_this_process(simulate_vector, vector, functions.GRID, replicates=2)
    assert set(result.children) == {"p", "pair"}
    mean = result["p/mean"]
    assert mean.dims == ("share", "replicate", "answer")
    np.testing.assert_allclose(mean.sum("answer"), 1)
    truth = result["p/truth"].isel(replicate=0)
    assert truth.sel(answer="yes", share=0.7) == 0.7
    assert result["pair/coverage"].dims == ("share", "pair_dim_0", "pair_dim_1")
    np.testing.assert_array_equal(result["pair/mean"].isel(pair_dim_0=1), mean)
    bias = (mean - result["p/truth"]).mean("replicate")
    np.testing.assert_allclose(result["p/bias"], bias, rtol=1e-12)


def test_var_names_without_a_truth():
    result = in_this_process(
        simulate_vector, vector, {"share": [0.3]}, var_names=["odds"], missing_information=False
    )
    odds = result["odds"]
    assert odds["sd"] > 0
    assert odds["truth"].isnull().all()
    assert odds["covered"].isnull().all()
    assert odds["missing_information"].isnull().all()


def test_a_table_of_cells_and_dims_of_the_same_name():
    def build(released, cells, share):
        with pm.Model(coords={"cell": ["no", "yes"]}) as model:
            pm.Dirichlet("p", np.ones(cells), dims="cell")
        return model

    def simulate(rng, cells, share):
        return {}, {"p": np.array([1 - share, share])}

    table = [{"cells": 2, "share": 0.3}, {"cells": 2, "share": 0.7}, {"cells": 2, "share": 0.1}]
    table[0]["share"], table[2]["cells"] = 0.3, 3
    with pytest.warns(UserWarning, match="of 3 cells, 1 failed"):
        result = in_this_process(simulate, build, table)
    assert list(result["status"].isel(replicate=0)) == ["done", "done", "failed"]
    assert result["p/mean"].dims == ("cell", "replicate", "p_cell")
    assert list(result["share"].values) == [0.3, 0.7, 0.1]


@pytest.mark.parametrize("dim", ["mean", "coverage"])
def test_a_dim_with_the_name_of_a_statistic_gets_another_one(dim):
    """Else a study would end with an error when all its cells are done."""

    def build(released, share):
        with pm.Model(coords={dim: ["no", "yes"]}) as model:
            pm.Dirichlet("p", np.ones(2), dims=dim)
        return model

    result = in_this_process(simulate_vector, build, {"share": [0.3]})
    assert result["p/mean"].dims == ("share", "replicate", f"p_{dim}")
    assert result["p/coverage"].dims == ("share", f"p_{dim}")


def test_monte_carlo_errors_of_bias_and_coverage():
    result = in_this_process(simulate_vector, vector, {"share": [0.3]}, replicates=4)
    p = result["p"].dataset.isel(share=0, answer=0)
    np.testing.assert_allclose(p["bias_mcse"], p["error"].std(ddof=1) / 2)
    share = (p["covered"].sum() + 1) / 6
    np.testing.assert_allclose(p["coverage_mcse"], np.sqrt(share * (1 - share) / 4))
