"""Distinct rows: against counting by a dict."""

import numpy as np

from pymc_dapper.tabulation.rows import distinct_rows


def test_rows_are_counted():
    rng = np.random.default_rng(0)
    n = 60
    group, z = rng.integers(0, 3, n), rng.choice([0.5, -1.0], (n, 2))
    rows = distinct_rows([group, z, np.ones(n)], n)
    keys = [(g, *x) for g, x in zip(group, z, strict=True)]
    assert len(rows) == len(set(keys))
    assert sum(rows.sizes) == n
    assert [keys[k] for k in rows.first] == sorted(set(keys))
    assert [keys.count(keys[k]) for k in rows.first] == rows.sizes.tolist()
    assert all(keys[rows.first[own]] == key for own, key in zip(rows.own, keys, strict=True))


def test_records_that_are_alike_make_one_row_and_no_array():
    rows = distinct_rows([], 10**15)
    assert (len(rows), rows.sizes.tolist(), rows.own) == (1, [10**15], None)
    alike = distinct_rows([np.ones(4)], 4)
    assert (alike.sizes.tolist(), alike.own) == ([4], None)
