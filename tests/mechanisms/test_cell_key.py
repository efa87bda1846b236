"""Perturbation tables in the forms in which offices write them."""

import numpy as np
import pandas as pd
import pytest

from pymc_dapper.mechanisms import CellKey

RNG = np.random.default_rng(7)
PCV, CKEY = (x.ravel() for x in np.mgrid[1:751, 0:16])
PVALUE = np.maximum(RNG.integers(-3, 4, PCV.size), -PCV)
BY_KEYS = pd.DataFrame({"pcv": PCV, "ckey": CKEY, "pvalue": PVALUE})


def test_keys_are_equally_likely_and_the_last_rows_serve_all_larger_counts():
    mechanism = CellKey(BY_KEYS.sample(frac=1, random_state=1))
    counts = np.array([0, 1, 2, 400, 750, 751, 1000, 1001, 1751, 100_000])
    changes = np.arange(-4, 5)
    logp = mechanism.logp(counts[:, None] + changes, counts[:, None]).eval(mode="FAST_COMPILE")
    for n, row in zip(counts, np.exp(logp), strict=True):
        pcv = n if n <= 750 else (n - 1) % 250 + 501
        rows = BY_KEYS[BY_KEYS.pcv == pcv]
        expected = [np.mean(rows.pvalue == v) if n else v == 0 for v in changes]
        np.testing.assert_allclose(row, expected, rtol=1e-13)


def test_changes_with_their_probabilities_say_the_same():
    ptable = pd.DataFrame(
        {"i": [0, 1, 1, 2, 2, 2], "v": [0, -1, 1, -2, 0, 1], "p": [1, 0.5, 0.5, 0.2, 0.5, 0.3]}
    )
    ptable["j"] = ptable["i"] + ptable["v"]
    mechanism = CellKey(ptable)
    counts, values = np.array([0, 1, 2, 3, 70]), np.arange(80)
    p = np.exp(mechanism.logp(values, counts[:, None]).eval(mode="FAST_COMPILE"))
    assert {v: p[1, v] for v in (0, 2)} == pytest.approx({0: 0.5, 2: 0.5})
    for k, n in ((2, 2), (3, 3), (4, 70)):  # the last row serves all larger ones
        np.testing.assert_allclose(p[k, [n - 2, n, n + 1]], [0.2, 0.5, 0.3], rtol=1e-13)
    of_dict = CellKey({name: ptable[name].tolist() for name in ptable})
    np.testing.assert_array_equal(of_dict.ptable, mechanism.ptable)
    np.testing.assert_array_equal(CellKey(mechanism.ptable).ptable, mechanism.ptable)


def test_counts_beyond_a_shorter_table_are_refused():
    mechanism = CellKey(BY_KEYS[BY_KEYS.pcv <= 100])
    assert mechanism.repeats is None
    mechanism.check_released("n", np.array([0, 50]))
    with pytest.raises(
        ValueError, match=r"above 100, the largest with probabilities in CellKey.*index 1"
    ):
        mechanism.check_released("n", np.array([50, 101]))


@pytest.mark.parametrize(
    ("ptable", "message"),
    [
        (BY_KEYS[1:], "count 1 has 15 different keys, in 15 rows"),
        (pd.concat([BY_KEYS, BY_KEYS[:1]]), "count 1 has 16 different keys, in 17 rows"),
        (BY_KEYS[BY_KEYS.pcv != 7], "count 7 has 0 different keys, in 0 rows"),
        (BY_KEYS.assign(pvalue=np.nan), "pvalue must be finite"),
        (BY_KEYS.rename(columns={"pvalue": "value"}), "must have columns pcv, ckey, pvalue or"),
        ({"i": [0, 1], "v": [0, 0], "p": [1.0, 0.5]}, "those of 1 add up to 0.5"),
        ({"i": [0, 2], "v": [0, 0], "p": [1.0, 1.0]}, "count 1 is missing"),
        ({"i": [0], "j": [1], "v": [0], "p": [1.0]}, "j = i \\+ v"),
        ({"i": [0, 0.5], "v": [0, 0], "p": [1.0, 1.0]}, "i must be whole numbers"),
        ({"i": [0, 0], "v": [0, 1], "p": [1.5, -0.5]}, "negative"),
        ({"i": [0, 1], "v": [0], "p": [1.0]}, "ptable: .*same length"),
        (np.ones((3, 2)), "columns pcv"),
        ({}, "columns pcv, ckey, pvalue or i, v, p, got none"),
    ],
)
def test_what_is_no_ptable_is_refused(ptable, message):
    with pytest.raises(ValueError, match=message):
        CellKey(ptable)
