import datetime

import numpy as np
import pymc as pm
import pytest

from pymc_dapper.releases.labels import add_to_model, as_coords, as_dims, as_labels, listed


def test_dims_name_each_axis():
    assert as_dims("q", None, 2) == (None, None)
    assert as_dims("q", "a", 1) == ("a",)
    assert as_dims("q", [None, None], 2) == (None, None)
    for dims, error in [
        ("a", ValueError),
        (("a", "a"), ValueError),
        ((1, 2), TypeError),
        (("a", None), ValueError),
    ]:
        with pytest.raises(error, match=r"^'q': dims"):
            as_dims("q", dims, 2)


def test_labels_are_plain_python():
    given = [np.int64(3), "x", 2.5, np.str_("y"), datetime.date(2020, 4, 1)]
    assert as_labels("labels", given) == (3, "x", 2.5, "y", "2020-04-01")
    assert as_labels("labels", np.array(["2020-04-01"], dtype="datetime64[D]")) == ("2020-04-01",)
    assert type(as_labels("labels", np.array([1]))[0]) is int


@pytest.mark.parametrize(
    ("labels", "error", "message"),
    [
        (["a", "b", "a"], ValueError, "'a' is there twice"),
        ([1, np.nan], ValueError, "missing"),
        ([None], ValueError, "missing"),
        ("ab", TypeError, "a list of labels"),
        ({"a", "b"}, TypeError, "a list of labels, got a set"),
        ({1: "b", 0: "a"}, TypeError, "a list of labels, got a dict"),
        ([[1]], TypeError, "strings or numbers"),
        (np.ones((1, 1)), ValueError, "shape"),
    ],
)
def test_what_is_no_label_is_refused(labels, error, message):
    with pytest.raises(error, match=message):
        as_labels("labels", labels)


def test_coords_are_a_dict():
    assert as_coords("the", None) == {}
    with pytest.raises(TypeError, match="the coords must be a dict"):
        as_coords("the", ["a"])


def test_a_model_gets_the_dims_that_it_has_not():
    with pm.Model(coords={"known": [1, 2]}) as model:
        dims = ("known", "new", "bare")
        add_to_model("q", model, dims, (2, 2, 3), {"known": (1, 2), "new": ("a", "b")})
    assert model.coords["new"] == ("a", "b")
    assert int(model.dim_lengths["bare"].eval(mode="FAST_COMPILE")) == 3


def test_labels_of_the_model_in_another_order_are_refused():
    model = pm.Model(coords={"sex": ["f", "m"]})
    with pytest.raises(ValueError, match=r"'q': .*'sex' in another order .*'f', 'm'.*'m', 'f'"):
        add_to_model("q", model, ("sex",), (2,), {"sex": ("m", "f")})
    with pytest.raises(ValueError, match=r"'q': .*other labels along dim 'sex'"):
        add_to_model("q", model, ("sex",), (2,), {"sex": ("m", "x")})


def test_many_labels_are_told_by_the_first():
    assert listed(["a", "b"]) == "'a', 'b'"
    assert listed(range(9)) == "0, 1, 2, 3, ... (9)"
