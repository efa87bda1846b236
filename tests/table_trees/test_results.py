"""Summaries of draws, in memory and in files."""

import numpy as np
import pandas as pd
import pytest
from arviz_stats.base import array_stats

from pymc_dapper.table_trees import results
from tests.table_trees.small_table_trees import example


def test_summaries_are_those_of_the_draws(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "AT_ONCE", 200)  # some areas after the other
    tree, _ = example(False)
    drawn = tree.sample(50, keep={"age": ("age", [0, 3, 5])}, random_seed=1, results=tmp_path)
    found, x = drawn.summary("age"), drawn["age"]
    assert x.shape == (2, 50, 3, 2)
    flat = x.reshape(100, 3, 2)
    np.testing.assert_allclose(found.mean, flat.mean(axis=0))
    np.testing.assert_allclose(found.sd, flat.std(axis=0))
    counts = np.sort(flat, axis=0)
    np.testing.assert_array_equal(found.quantiles[..., 0], counts[4])
    np.testing.assert_array_equal(found.quantiles[..., 2], counts[94])
    one = x[:, :, 1, 0].astype(float)
    assert found.ess[1, 0] == array_stats.ess(one, chain_axis=0, draw_axis=1, method="bulk")
    assert found.r_hat[1, 0] == array_stats.rhat(one, chain_axis=0, draw_axis=1)

    frame = pd.read_parquet(tmp_path / "age.parquet")
    assert frame["area"].tolist() == [0, 0, 3, 3, 5, 5]
    assert frame["class"].tolist() == [0, 1] * 3
    np.testing.assert_array_equal(frame["q0.95"], found.quantiles[..., 2].ravel())
    np.testing.assert_array_equal(frame["ess"], found.ess.ravel())
    with pytest.raises(KeyError, match="no margin 'sex' was kept, but 'age'"):
        drawn["sex"]
    with pytest.raises(KeyError, match="no margin 'sex'"):
        drawn.summary("sex")


def test_chains_that_stand_still_apart_are_told():
    x = np.zeros((2, 40, 1, 3), dtype=int)
    x[1, :, 0, 1] = 1
    x[:, ::2, 0, 2] = 1
    found = results.TableDraws({"a": list(x)}, {"a": np.array([0])}, np.zeros((4, 2))).summary("a")
    assert np.isnan(found.r_hat[0, 0])
    assert found.r_hat[0, 1] == np.inf
    assert found.r_hat[0, 2] < 1.01
