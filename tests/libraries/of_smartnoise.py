import numpy as np
import pandas as pd
import pytest
import snsql
from scipy import stats
from snsql.sql.privacy import Mechanism, Stat

import pymc_dapper as pmd
from pymc_dapper.releases import smartnoise_mechanism
from tests.libraries.compared import RECORDS, assert_posterior, same_law

N_GROUPS = 800
QUERY = (
    "SELECT g, COUNT(DISTINCT id) AS people, SUM(x) AS total, SUM(y) AS amount FROM S.T GROUP BY g"
)


def released(frame, query, count_noise=None, **options):
    """Rows of a query, and the mechanism that the reader finds for each column."""
    table = {
        "row_privacy": False,
        "max_ids": 1,
        "id": {"type": "int", "private_id": True},
        "g": {"type": "int"},
        "x": {"type": "int", "lower": -3, "upper": 3},
        "y": {"type": "float", "lower": 0.0, "upper": 2.0},
        **options,
    }
    privacy = snsql.Privacy(epsilon=0.5, delta=1e-3)
    if count_noise is not None:
        for stat in (Stat.count, Stat.threshold):
            privacy.mechanisms.map[stat] = count_noise
    reader = snsql.from_df(frame, privacy=privacy, metadata={"": {"S": {"T": table}}})
    header, *rows = reader.execute(query)
    subquery, _ = reader._rewrite(query)
    names = [symbol.name for symbol in subquery._select_symbols]
    found = pd.DataFrame(rows, columns=header)
    return found, dict(zip(names, reader._get_mechanisms(subquery), strict=True))


def groups(size):
    """So many people in each of many groups; each has x = 0, y = 1."""
    n = N_GROUPS * size
    return pd.DataFrame(
        {"id": range(n), "g": np.repeat(np.arange(N_GROUPS), size), "x": [0] * n, "y": [1.0] * n}
    )


@pytest.mark.parametrize("noise", [None, Mechanism.gaussian], ids=["laplace", "gaussian"])
@pytest.mark.parametrize("clamp", [True, False])
def test_noise_has_the_law_that_is_read(noise, clamp):
    frame = groups(2)
    rows, told = released(frame, QUERY, noise, censor_dims=False, clamp_counts=clamp)
    read = {
        "people": smartnoise_mechanism(told["count_distinct_id"], "int", clamp_counts=clamp),
        "total": smartnoise_mechanism(told["sum_x"], "int"),
        "amount": smartnoise_mechanism(told["sum_y"], "float"),
    }
    for (column, mechanism), truth in zip(read.items(), (2, 0, 2.0), strict=True):
        assert same_law(rows[column], mechanism, truth) > 1e-4
        # As if the statistic were half a unit off.
        assert same_law(rows[column], mechanism, truth + 3) < 1e-4
    plain = smartnoise_mechanism(told["count_distinct_id"], "float")
    assert same_law(rows["people"], plain, 2) < 1e-4


def test_small_groups_are_left_out():
    size = 12
    rows, told = released(groups(size), QUERY, censor_dims=True)
    mechanism = smartnoise_mechanism(told["keycount"], "int", clamp_counts=True, censor_dims=True)
    people = rows.set_index("g")["people"].reindex(range(N_GROUPS)).to_numpy(dtype=float)
    query = pmd.Query("people", np.ma.masked_invalid(people), mechanism)
    ours = mechanism.release(np.full(20_000, size), np.random.default_rng(1))
    share = 1 - np.ma.getmaskarray(ours).mean()
    assert abs(query.values.count() / N_GROUPS - share) < 4.5 * np.sqrt(share / N_GROUPS)
    assert query.values.min() >= int(told["keycount"].threshold)


def test_a_release_becomes_its_posterior():
    frame = pd.DataFrame(
        {"id": range(RECORDS.size), "g": RECORDS, "x": 0, "y": 1.0},
    )
    rows, told = released(frame, QUERY, censor_dims=False)
    mechanism = smartnoise_mechanism(told["count_distinct_id"], "int", clamp_counts=True)
    release = pmd.read_release(rows, values="people", noise=mechanism, dims="g")
    value = float(release["people"].values[list(release.coords["g"]).index(1)])
    assert value > 0

    def law(counts, scale):  # what was cut off lay from the value on
        return np.diff(stats.laplace(counts, scale).cdf([[value], [value + 1]]), axis=0)[0]

    query = pmd.Query("released", value, mechanism)
    assert_posterior(query, law, told["count_distinct_id"].scale)
