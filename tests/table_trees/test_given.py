"""What TableTree refuses, by the name of what is wrong."""

import numpy as np
import pytest

import pymc_dapper as pmd
from pymc_dapper.table_trees.given import read_geography, read_queries, released_totals

NAN = np.nan
PARENT = [1, -1, 1]
RELEASED = [[1.0, 2], [3, 4], [NAN, NAN]]


def query(**changed):
    given = {"classes": [0, 1, 1], "released": RELEASED, "scale": 2.0} | changed
    return pmd.TableQuery(**given)


def made(of=None, **options):
    return pmd.TableTree(PARENT, {"age": of or query()}, prior=np.log([0.5, 0.3, 0.2]), **options)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"classes": [0, 1.5, 1]}, "'age'.: classes must be whole numbers from -1 to 1"),
        ({"classes": [0, 1, 2]}, "classes must be whole numbers from -1 to 1"),
        ({"classes": [0, 0, 0]}, "class 1 has no cell, but a column of released"),
        ({"released": [[1.0, 2]]}, r"released must have shape \(3, any\): a row for each area"),
        ({"released": [[1.5, 2], [3, 4], [1, 1]]}, "isn't whole, though its noise is discrete"),
        ({"released": [[1e12, 2], [3, 4], [1, 1]]}, "between"),
        ({"scale": -1.0}, "scale must be from 0 on"),
        ({"scale": [1.0, 2.0]}, r"scale must have shape \(\) or \(3,\)"),
        ({"scale": 0}, "only totals of all cells may be exact"),
        ({"noise": "laplace"}, "noise must be 'discrete_gaussian' or 'gaussian', got 'laplace'"),
    ],
)
def test_queries_that_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        made(query(**changed))


def test_gaussian_noise_may_be_fractional_and_a_scale_missing_where_nothing_was_released():
    made(query(released=[[1.3, 2], [3, 4.7], [NAN, NAN]], noise="gaussian"))
    made(query(scale=[1.0, 1.0, NAN]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concentration": [1.0, 2.0]}, r"shape \(\) or \(3,\), one for each cell"),
        ({"concentration": 0.0}, "concentration must be positive"),
        ({"shared": 2}, "shared must be a whole number of at least 0 and of at most 1"),
        ({"impossible": [0, 1, 0]}, "impossible must be an array of bool"),
        ({"impossible": [True] * 3}, "no cell is left for area 1"),
        (
            {"impossible": np.array([[True, False, False], [False] * 3, [False] * 3])},
            "area 0 has impossible cells of its own, but shares proportions",
        ),
        ({"names": ["a"]}, "names must be as many as areas"),
    ],
)
def test_options_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        made(**options)


def test_impossible_cells_of_a_block_with_proportions_of_its_own():
    mask = np.array([[True, False, False], [False] * 3, [False] * 3])
    assert (made(impossible=mask, shared=1)._fixed.alpha == 0).sum() == 1


def test_queries_of_other_cells_than_the_first_are_refused():
    with pytest.raises(ValueError, match=r"'b'.: classes must have shape \(3,\)"):
        read_queries({"a": query(), "b": query(classes=[0, 1])}, 3)
    with pytest.raises(TypeError, match="queries must be a dict"):
        read_queries([query()], 3)
    with pytest.raises(TypeError, match=r"'a'. must be a pmd.TableQuery"):
        read_queries({"a": 3}, 3)


def test_totals_that_contradict_each_other():
    total = pmd.TableQuery([0, 0, 0], [[1.0], [NAN], [NAN]], 0)
    other = total._replace(released=[[2.0], [NAN], [NAN]])
    with pytest.raises(ValueError, match=r"'b'.: the exact total of area 0 is 2, and 1 in a"):
        released_totals(read_queries({"a": total, "b": other}, 3), 3)


def test_totals_are_weighted_by_their_precision():
    total = pmd.TableQuery([0, 0, 0], [[8.0], [NAN], [5.0]], [2.0, 1, 0])
    told = released_totals(read_queries({"a": total, "b": query(scale=1.0)}, 3), 3)
    # 8 with variance 4, and 1 + 2 with variance 2.
    np.testing.assert_allclose(told.value, [(8 / 4 + 3 / 2) / (1 / 4 + 1 / 2), 7, 5])
    np.testing.assert_allclose(told.variance, [1 / (1 / 4 + 1 / 2), 2, 0])


def test_an_areas_blocks_are_a_run():
    rng = np.random.default_rng(1)
    parent = np.array([-1, *(rng.integers(k) for k in range(1, 40))])
    mixed = rng.permutation(40)
    shuffled = np.empty(40, dtype=int)
    shuffled[mixed] = np.where(parent >= 0, mixed[parent], -1)
    areas = read_geography(shuffled)
    for area in range(40):
        inside = []
        for leaf in areas.leaf:
            above = leaf
            while above >= 0 and above != area:
                above = shuffled[above]
            inside.append(above == area)
        run = np.flatnonzero(inside)
        np.testing.assert_array_equal(run, np.arange(areas.begin[area], areas.end[area]))
    with pytest.raises(ValueError, match="circle"):
        read_geography([1, 0, -1])
