import numpy as np
import pymc as pm
import pymc.dims as pmdims
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.releases.margins import margin

NOISE = pmd.LaplaceMechanism(1.0)
TABLE = np.arange(24).reshape(4, 3, 2)
DIMS = ("tract", "race", "age")
WITHIN = {"county": ("tract", ["b", "a", "b", "a"])}


def query(dims, shape, coords=None):
    return pmd.Query("q", np.zeros(shape), NOISE, dims, coords)


@pytest.mark.parametrize(
    ("dims", "expected"),
    [
        ((), TABLE.sum()),
        (("race",), TABLE.sum(axis=(0, 2))),
        (("age", "tract"), TABLE.sum(axis=1).T),
        (DIMS, TABLE),
    ],
)
def test_other_dims_are_summed_over(dims, expected):
    asked = query(dims, expected.shape)
    np.testing.assert_array_equal(margin(asked, TABLE, DIMS, {}), expected)
    symbolic = margin(asked, pt.as_tensor(TABLE), DIMS, {})
    np.testing.assert_array_equal(symbolic.eval(mode="FAST_COMPILE"), expected)


@pytest.mark.parametrize("turned", [False, True])
def test_groups_are_summed_in_the_order_of_their_labels(turned):
    expected = np.stack([TABLE[[1, 3]].sum(axis=(0, 2)), TABLE[[0, 2]].sum(axis=(0, 2))])
    dims = ("race", "county") if turned else ("county", "race")
    expected = expected.T if turned else expected
    asked = query(dims, expected.shape, {"county": ["a", "b"]})
    np.testing.assert_array_equal(margin(asked, TABLE, DIMS, WITHIN), expected)
    symbolic = margin(asked, pt.as_tensor(TABLE), DIMS, WITHIN)
    np.testing.assert_array_equal(symbolic.eval(mode="FAST_COMPILE"), expected)


COUNTY = query(("county",), 2, {"county": ["a", "b"]})


@pytest.mark.parametrize(
    ("asked", "dims", "within", "message"),
    [
        (query(("sex",), 2), DIMS, {}, "'q': the table has no dim 'sex'"),
        (query(None, (2,)), DIMS, {}, "'q': margins need a name"),
        (COUNTY, DIMS[:2], WITHIN, "dims must name each axis"),
        (COUNTY, DIMS, {"county": ("block", ["a"])}, "groups 'block'"),
        (COUNTY, DIMS, {"county": ("tract", list("aabc"))}, "'c' is no label"),
        (COUNTY, DIMS, {"county": ("tract", list("aab"))}, "each of the 4 entries"),
        (COUNTY, DIMS, {"county": ("tract", list("aaaa"))}, "no entry of 'tract' is in 'b'"),
        (COUNTY, DIMS, {"county": "tract"}, "must have a pair"),
    ],
)
def test_what_is_no_margin_is_refused(asked, dims, within, message):
    with pytest.raises((TypeError, ValueError), match=message):
        margin(asked, TABLE, dims, within)


def test_a_table_with_named_dims_is_summed_by_their_names():
    with pm.Model(coords={"tract": range(4), "race": range(3), "age": range(2)}):
        table = pmdims.Data("table", TABLE, dims=DIMS)
    for dims in (DIMS, ("age", "tract", "race")):
        summed = margin(query(("age", "tract"), (2, 4)), table, dims, {})
        np.testing.assert_array_equal(summed.eval(mode="FAST_COMPILE"), TABLE.sum(axis=1).T)
    with pytest.raises(ValueError, match="dims must be those of the table"):
        margin(query((), ()), table, ("tract", "race", "sex"), {})
