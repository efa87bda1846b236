"""Distinct rows: against counting by a dict."""

from itertools import product

import numpy as np

from pymc_dapper.tabulation.rows import distinct_rows


def test_rows_are_counted():
    rng = np.random.default_rng(0)
    n = 60
    group, z = rng.integers(0, 3, n), rng.choice([0.5, -1.0], (n, 2))
    found = distinct_rows([group, z, np.ones(n)], n)
    keys = [(g, *x) for g, x in zip(group, z, strict=True)]
    assert len(found) == len(set(keys))
    assert sum(found.sizes) == n
    assert [keys[k] for k in found.first] == sorted(set(keys))
    assert [keys.count(keys[k]) for k in found.first] == found.sizes.tolist()
    assert all(keys[found.first[own]] == key for own, key in zip(found.own, keys, strict=True))


def test_records_that_are_alike_make_one_row_and_no_array():
    found = distinct_rows([], 10**15)
    assert (len(found), found.sizes.tolist(), found.own) == (1, [10**15], None)
    alike = distinct_rows([np.ones(4)], 4)
    assert (alike.sizes.tolist(), alike.own) == ([4], None)


def test_rows_of_all_kinds_are_those_that_sorting_finds():
    rng, n = np.random.default_rng(1), 41
    kinds = {
        "indices": rng.integers(-3, 3, n, dtype=np.int8),
        "flags": rng.random(n) < 0.3,
        "numbers": rng.choice([-0.5, 2.0, 1e9], n),
        "pairs": rng.integers(0, 4, (n, 2)).astype(np.uint8),
        "far apart": rng.choice([-(10**12), 5, 10**12], n),
        "zeros": rng.choice([0.0, -0.0, 1.0], n),
        "extremes": rng.choice(np.array([-128, 127], dtype=np.int8), n),
    }
    for names in product(kinds, repeat=2):
        columns = np.column_stack([kinds[name].astype(float) for name in names])
        _, first, own, sizes = np.unique(
            columns, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        found = distinct_rows([kinds[name] for name in names], n)
        np.testing.assert_array_equal(found.first, first)
        np.testing.assert_array_equal(found.sizes, sizes)
        np.testing.assert_array_equal(found.own, own.ravel())


def test_missing_values_are_alike_and_come_last():
    found = distinct_rows([np.array([np.nan, 1.0, np.nan, -np.inf]), np.array([2, 2, 2, 1])], 4)
    assert found.first.tolist() == [3, 1, 0]
    assert found.sizes.tolist() == [1, 1, 2]
