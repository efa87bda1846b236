import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd

NOISE = pmd.DiscreteLaplaceMechanism(3.0)
TABLE = np.array([[3, 12, 40], [8, 9, 10]])
COORDS = {"a": ["x", "y"], "b": [1, 2, 3]}


def query(values=TABLE, mechanism=NOISE, dims=("a", "b"), coords=COORDS):
    return pmd.Query("n", values, mechanism, dims, coords)


@pytest.mark.parametrize("method", ["potential", "observe"])
def test_its_likelihood_is_that_of_the_mechanism(method):
    by_hand, statistic = pm.Model(coords=COORDS), np.arange(6).reshape(2, 3)
    with by_hand:
        getattr(NOISE, method)("n", pt.as_tensor(statistic), released=TABLE, dims=("a", "b"))
    with pm.Model() as model:
        added = getattr(query(), method)(pt.as_tensor(statistic))
    assert model.coords == {"a": ("x", "y"), "b": (1, 2, 3)}
    assert model.named_vars_to_dims[added.name] == ("a", "b")
    expected, found = (
        [x.eval(mode="FAST_COMPILE") for x in m.logp(sum=False)] for m in (by_hand, model)
    )
    np.testing.assert_array_equal(found, expected)
    assert added.tag.mechanism is NOISE


def test_what_it_shows():
    assert repr(query()) == "<Query 'n' by a, b: shape (2, 3), DiscreteLaplaceMechanism(scale=3)>"
    assert repr(query(dims=None, coords=None)).startswith("<Query 'n': shape (2, 3), ")


def test_another_name_may_be_given():
    with pm.Model() as model:
        query().potential(pt.as_tensor(TABLE), name="noisy")
    assert "noisy" in model.named_vars


def test_suppressed_entries_are_masked():
    rules = NOISE.published_if(">=", 8)
    for missing in (np.ma.masked_array(TABLE, TABLE < 8), np.where(TABLE < 8, np.nan, TABLE)):
        found = query(missing, rules)
        assert found.values.mask.sum() == 1
        with pm.Model():
            found.potential(pt.as_tensor(TABLE))


def test_a_statistic_with_its_dims_in_another_order_is_refused():
    square = pmd.Query("n", np.eye(2), pmd.LaplaceMechanism(1.0), ("a", "b"), {"a": [1, 2]})
    with pm.Model(coords={"a": [1, 2], "b": [3, 4]}):
        turned = pm.Normal("turned", dims=("b", "a"))
        with pytest.raises(ValueError, match=r"'n': the statistic, .*transpose"):
            square.potential(turned)
        square.potential(turned.T)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"values": TABLE + 0.5}, ValueError, "releases integers"),
        ({"values": np.where(TABLE > 20, np.nan, TABLE)}, ValueError, "finite"),
        ({"values": [["a", "b", "c"]] * 2}, TypeError, "real numbers"),
        ({"values": np.ma.masked_array(TABLE, TABLE > 20)}, ValueError, "masked"),
        ({"mechanism": pmd.LaplaceMechanism([1.0, 2.0])}, ValueError, "noise scale"),
        ({"mechanism": 2.0}, TypeError, "mechanism must be a Mechanism"),
        ({"dims": "a"}, ValueError, "dims"),
        ({"coords": {"a": ["x"], "b": [1, 2, 3]}}, ValueError, "length 2 along 'a'"),
        ({"coords": {"c": ["x"]}}, ValueError, "there is no dim 'c', but a, b"),
        ({"values": pt.matrix()}, TypeError, "not symbolic"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(change, error, message):
    with pytest.raises(error, match=f"^'n': .*{message}"):
        query(**change)
