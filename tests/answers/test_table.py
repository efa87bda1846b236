"""Which cells of a table the released values are sums of."""

import numpy as np
import pytest

import pymc_dapper as pmd
from pymc_dapper.answers.table import are_nested, joint_table, table_of_query

NOISE = pmd.LaplaceMechanism(2.0)
TRACTS = ["01a", "01b", "02a"]
WITHIN = {"county": ("tract", ["01", "01", "02"])}


def query(name, shape, dims, coords=None):
    return pmd.Query(name, np.arange(np.prod(shape, dtype=int)).reshape(shape), NOISE, dims, coords)


def test_margins_are_those_of_a_release():
    queries = [
        query("cells", (2, 3), ("sex", "tract"), {"tract": TRACTS}),
        query("counties", (2, 2), ("county", "sex"), {"county": ["02", "01"]}),
        query("all", (), ()),
    ]
    table = joint_table(queries, WITHIN)
    assert (table.dims, table.shape) == (("sex", "tract"), (2, 3))
    counts = np.arange(1, 7).reshape(2, 3) ** 2
    expected = pmd.Release(queries).margins(counts, ["sex", "tract"], within=WITHIN)
    for each, groups in zip(queries, table.groups, strict=True):
        sums = np.bincount(groups, weights=counts.ravel())
        np.testing.assert_array_equal(sums, expected[each.name].ravel())


def test_groups_are_labels_along_what_they_group():
    queries = [
        query("cells", (3,), ("tract",), {"tract": TRACTS}),
        query("counties", (2,), ("county",), {"county": ["01", "02"]}),
    ]
    array = joint_table(queries, WITHIN).as_array(np.array([1, 2, 4]))
    assert array.groupby("county").sum().values.tolist() == [3, 4]


@pytest.mark.parametrize(
    ("groups", "nested"),
    [
        ([[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]], True),
        ([[0, 0, 1, 1], [0, 0, 1, 1]], True),
        ([[0, 0, 1, 1], [0, 1, 0, 1]], False),
        ([[0, 0, 1, 1], [0, 0, 0, 1]], False),
    ],
)
def test_nested_sums_are_told_from_others(groups, nested):
    assert are_nested([np.array(each) for each in groups]) is nested


def test_released_values_are_those_of_the_cells_alone():
    cells = query("cells", (2, 3), ("sex", "tract"))
    table = joint_table([cells, query("sexes", (2,), ("sex",))], {})
    assert np.array_equal(table.released(), cells.values)
    assert (
        joint_table([query("sexes", (2,), ("sex",)), query("a", (2,), ("age",))], {}).released()
        is None
    )


def test_dims_without_names_get_some():
    assert table_of_query(query("a", (2,), None)).dims == ("row",)
    assert table_of_query(query("a", (2, 2), None)).dims == ("axis_0", "axis_1")


def test_what_is_no_margin_is_refused():
    named = query("cells", (2, 3), ("sex", "tract"))
    with pytest.raises(ValueError, match="'other': margins need a name for each axis"):
        joint_table([named, query("other", (2,), None)], {})
    with pytest.raises(ValueError, match="a dim is called 'draw'"):
        table_of_query(query("cells", (2,), ("draw",)))
    with pytest.raises(ValueError, match="isn't a dim"):
        joint_table([named, query("c", (2,), ("county",))], {"county": ("block", ["a", "b"])})


@pytest.mark.parametrize(("shape", "dims"), [((2,), ("k",)), ((2, 1), ("k", "j"))])
def test_a_cell_whose_change_is_known_twice_is_refused(shape, dims):
    keys = pmd.CellKey({"i": [0, 1, 1], "v": [0, 0, 1], "p": [1, 0.5, 0.5]})
    one = pmd.Query("one", [3, 5], keys, "k")
    again = pmd.Query("again", np.reshape([3, 5], shape), keys, dims)
    with pytest.raises(ValueError, match="'one' and 'again' have cells in common"):
        joint_table([one, again], {})
    total = pmd.Query("total", 8, keys, ())
    assert joint_table([one, total], {}).size == 2
    rounded = [pmd.Query(name, [3, 6], pmd.RandomRounding(3), "k") for name in "ab"]
    assert joint_table(rounded, {}).size == 2
