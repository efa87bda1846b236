import numpy as np
import pandas as pd
import pymc as pm
import pytensor.tensor as pt
import pytest
import xarray as xr

import pymc_dapper as pmd

TABLE = {
    "sex": ["m", "m", "f", "f"],
    "age": ["old", "young", "old", "young"],
    "people": [12, 31, 9, 40],
    "income": [1.5, 2.5, 3.5, 4.5],
    "noise_scale": [1.0, 2.0, 3.0, 4.0],
}
PLAIN = {"values": "people", "noise": "discrete laplace", "scale": 3.0, "dims": ("sex", "age")}


def test_a_table_becomes_a_release(tmp_path):
    frame = pd.DataFrame(TABLE)
    path = tmp_path / "table.csv"
    frame.to_csv(path, index=False)
    for table in (TABLE, frame, frame.set_index(["sex", "age"]), path):
        release = pmd.read_release(table, **PLAIN)
        query = release["people"]
        assert query.values.tolist() == [[12, 31], [9, 40]]
        assert query.values.dtype == np.int64
        assert query.dims == ("sex", "age")
        assert query.coords == {"sex": ("m", "f"), "age": ("old", "young")}
        assert repr(query.mechanism) == "DiscreteLaplaceMechanism(scale=3)"


def test_names_and_dims_come_out_in_arviz():
    release = pmd.read_release(TABLE, **PLAIN)
    with pm.Model(coords=release.coords) as model:
        people = pm.Poisson("latent", 20, dims=("sex", "age"))
        release.observe(people)
        in_python = {"mode": "FAST_COMPILE"}
        prior = pm.sample_prior_predictive(2, random_seed=1, compile_kwargs=in_python)
    assert prior.prior_predictive["people"].dims == ("chain", "draw", "sex", "age")
    assert list(prior.prior_predictive["people"]["age"].values) == ["old", "young"]
    assert "people" in model.named_vars


def test_whole_numbers_stay_exact():
    frame = {**TABLE, "people": [2**53, 2**53 - 1, -(2**53), 0]}
    query = pmd.read_release(frame, **PLAIN)["people"]
    assert query.values.tolist() == [[2**53, 2**53 - 1], [-(2**53), 0]]
    assert query.values.dtype == np.int64


def test_labels_of_several_kinds_stay_as_they_are():
    frame = {"group": [2, "a", 1.5], "year": ["07", "7", "007"], "n": [1, 2, 3]}
    mechanism = pmd.DiscreteLaplaceMechanism(3.0).published_if(">=", 1)
    query = pmd.read_release(frame, values="n", noise=mechanism, dims=("group", "year"))["n"]
    assert query.coords == {"group": (2, "a", 1.5), "year": ("07", "7", "007")}
    assert query.values.filled(0).tolist() == np.diag([1, 2, 3]).tolist()


def test_several_queries_each_with_its_noise():
    release = pmd.read_release(
        TABLE,
        values=["people", "income"],
        noise={"people": "discrete gaussian", "income": pmd.LaplaceMechanism(2.0).rounded(0.5)},
        scale={"people": "noise_scale", "income": None},
        dims=["age", "sex"],
        coords={"age": ["young", "old"]},
        budget=pmd.ZCDP(0.1),
    )
    np.testing.assert_array_equal(release["people"].mechanism.sigma, [[2.0, 4.0], [1.0, 3.0]])
    assert release["people"].values.tolist() == [[31, 40], [12, 9]]
    assert repr(release["income"].mechanism) == "LaplaceMechanism(scale=2).rounded(0.5)"
    assert release.budget == pmd.ZCDP(0.1)


def test_without_dims_rows_are_one_axis():
    query = pmd.read_release(TABLE, values="people", noise="laplace", scale=1.0)["people"]
    assert query.values.tolist() == TABLE["people"]
    assert query.dims == (None,)


def test_rows_that_are_not_there_are_suppressed_if_the_mechanism_says_so():
    rows = {key: column[:3] for key, column in TABLE.items()}
    rules = pmd.DiscreteLaplaceMechanism(3.0).published_if(">=", 9)
    release = pmd.read_release(rows, values="people", noise=rules, dims=("sex", "age"))
    assert release["people"].values.mask.tolist() == [[False, False], [False, True]]
    with pytest.raises(ValueError, match="'people': there is no value of sex 'f', age 'young'"):
        pmd.read_release(rows, **PLAIN)


def test_an_xarray_brings_its_dims():
    array = xr.DataArray(
        [[1.0, 2.0], [3.0, 4.0]], dims=("a", "b"), coords={"a": ["x", "y"]}, name="t"
    )
    scale = xr.DataArray([0.5, 1.5], dims="b")
    for table, size in ((array, 0.5), (xr.Dataset({"t": array, "s": scale}), "s")):
        query = pmd.read_release(table, values="t", noise="laplace", scale=size)["t"]
        assert query.dims == ("a", "b")
        assert query.coords == {"a": ("x", "y")}
        np.testing.assert_array_equal(query.values, array)
    np.testing.assert_array_equal(query.mechanism.scale, [[0.5, 1.5], [0.5, 1.5]])
    broken = array.where(array != 2)
    with pytest.raises(ValueError, match="'t': there is no value of a 'x', b 1"):
        pmd.read_release(broken, values="t", noise="laplace", scale=1.0)
    with pytest.raises(ValueError, match="leave them out"):
        pmd.read_release(array, values="t", noise="laplace", scale=1.0, dims="a")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scale": None}, "'people': scale is missing"),
        ({"scale": -1.0}, "'people': scale"),
        ({"scale": [1.0, 2.0]}, "'people': scale"),
        ({"scale": "sigma"}, "scale: there is no column 'sigma'"),
        ({"scale": {"income": 1.0}}, "scale: there is no column of values 'income'"),
        ({"scale": "people"}, "'people': scale is 'people', a column of released values"),
        ({"noise": "staircase"}, "'people': noise must be"),
        (
            {"noise": {"income": "laplace"}},
            "there is no column of values 'income', but people",
        ),
        ({"noise": {}}, "'people': noise is missing"),
        ({"noise": pmd.LaplaceMechanism(1.0)}, "'people': leave out scale"),
        ({"values": "persons"}, "values: there is no column 'persons'"),
        ({"values": "income"}, "'income': .*releases integers"),
        ({"values": "sex", "noise": "laplace"}, "'sex': values must be numbers"),
        ({"dims": "sex"}, "'people': there are two rows of sex 'm'"),
        ({"dims": "region"}, "dims: there is no column 'region'"),
        ({"coords": {"region": [1]}}, "coords has labels of 'region'"),
        ({"values": "sex", "dims": None}, "got 'm' at row 0.* empty, or nan, and write decimals"),
        ({"coords": {"sex": ["m"]}}, "'people': 'f' isn't among the coords of 'sex'"),
    ],
)
def test_wrong_or_incomplete_metadata_is_refused_by_name(change, message):
    with pytest.raises((TypeError, ValueError), match=message):
        pmd.read_release(TABLE, **{**PLAIN, **change})


@pytest.mark.parametrize("value", ["3", True, np.True_, b"3", 1j, np.complex128(1), [3], "<5"])
def test_what_is_no_number_is_refused(value):
    frame = {**TABLE, "people": [value, 1, 2, 3]}
    for change in ({}, {"values": "income", "scale": "people", "noise": "laplace"}):
        with pytest.raises(
            TypeError, match=r"values must be numbers, got .* at sex 'm', age 'old'"
        ):
            pmd.read_release(frame, **PLAIN | change)


def test_arrays_of_no_numbers_are_refused():
    times = (np.array([20, 21], kind) for kind in ("M8[s]", "m8[s]"))
    for values in ([True, False], ["1", "2"], [1j, 2], *times):
        array = xr.DataArray(values, dims="a", coords={"a": ["x", "y"]}, name="t")
        with pytest.raises(TypeError, match=r"'t': values must be numbers, got .* at a 'x'"):
            pmd.read_release(array, values="t", noise="laplace", scale=1.0)


def test_rows_that_have_no_place_are_refused():
    for change, message in (
        ({"sex": ["m", None, "f", "f"]}, "'people': labels of 'sex': a label is missing"),
        ({"sex": [pd.NaT, *pd.date_range("2020", periods=3)]}, "a label is missing"),
        ({"people": [2**70, 1, 2, 3]}, "'people': values must fit into 64 bits, got 11805916207"),
    ):
        with pytest.raises(ValueError, match=message):
            pmd.read_release({**TABLE, **change}, **PLAIN)


def test_nan_is_refused_by_name():
    broken = {**TABLE, "income": [1.0, np.nan, 2.0, 3.0]}
    with pytest.raises(ValueError, match="'income': there is no value of sex 'm', age 'young'"):
        pmd.read_release(broken, values="income", noise="laplace", scale=1, dims=("sex", "age"))


def test_the_likelihood_is_that_of_the_table():
    release = pmd.read_release(TABLE, **PLAIN)
    truth = np.array([[10, 30], [10, 38]])
    with pm.Model() as model:
        release.potential(pt.as_tensor(truth))
    noise = np.abs(release["people"].values - truth)
    q = np.exp(-1 / 3)
    expected = np.sum(np.log((1 - q) / (1 + q)) + noise * np.log(q))
    np.testing.assert_allclose(model.logp().eval(mode="FAST_COMPILE"), expected)
