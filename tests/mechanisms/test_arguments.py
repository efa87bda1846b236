"""What users pass beside a statistic: by which keyword, in which order, with which dims."""

import numpy as np
import pandas as pd
import pymc as pm
import pymc.dims as pmdims
import pytensor.tensor as pt
import pytest
import xarray

from pymc_dapper import (
    ZCDP,
    CustomMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    LInfMechanism,
    NoisyMaxMechanism,
    NoisyStats,
    RandomizedResponse,
    TulapMechanism,
    published_rows,
)
from pymc_dapper.statistics import counts

RELEASED = [10, 12, 8]


@pytest.fixture
def model():
    with pm.Model(coords={"cell": ["a", "b", "c"]}) as model:
        record = pm.Categorical("record", np.ones(3) / 3, shape=30)
        pm.Deterministic("table", counts(record, 3).value, dims="cell")
        yield model


@pytest.mark.parametrize("how", ["potential", "observe"])
class TestDims:
    def test_are_what_the_user_says(self, model, how):
        getattr(LaplaceMechanism(1.0), how)("s", model["table"] + 0, released=RELEASED, dims="cell")
        assert model.named_vars_to_dims["s"] == ("cell",)

    def test_are_those_of_the_statistic_if_it_is_a_variable_with_dims(self, model, how):
        getattr(LaplaceMechanism(1.0), how)("s", model["table"], released=RELEASED)
        assert model.named_vars_to_dims["s"] == ("cell",)

    def test_are_those_of_shared_data(self, model, how):
        data = pm.Data("data", np.array(RELEASED), dims="cell")
        getattr(LaplaceMechanism(1.0), how)("s", model["table"] + 0, released=data)
        assert model.named_vars_to_dims["s"] == ("cell",)

    def test_are_none_where_nothing_names_the_axes(self, model, how):
        getattr(LaplaceMechanism(1.0), how)("s", model["table"] + 0, released=RELEASED)
        assert "s" not in model.named_vars_to_dims

    @pytest.mark.parametrize(
        ("dims", "error", "message"),
        [
            ("cells", ValueError, "'s': the model's coords have no dim 'cells', but cell"),
            (("cell", "cell"), ValueError, r"'s': dims must name each axis.*has 1, got"),
            (3, TypeError, r"'s': dims must be names of dims, as in dims='cell', got 3"),
        ],
    )
    def test_that_do_not_fit_are_refused(self, model, how, dims, error, message):
        with pytest.raises(error, match=message):
            getattr(LaplaceMechanism(1.0), how)("s", model["table"], released=RELEASED, dims=dims)

    def test_of_another_length_are_refused(self, model, how):
        with pytest.raises(ValueError, match=r"'s': the release has length 2 along 'cell', .* 3"):
            getattr(LaplaceMechanism(1.0), how)(
                "s", model["table"][:2], released=[1, 2], dims="cell"
            )


def test_coords_are_those_of_the_release_in_what_pymc_returns(model):
    LaplaceMechanism(1.0).observe("s", model["table"], released=RELEASED)
    GaussianMechanism(1.0).potential("t", model["table"], released=RELEASED)
    with pytest.warns(UserWarning, match="Potentials"):  # not used in prior draws
        prior = pm.sample_prior_predictive(
            2, random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"}
        )
    for group, name in [("prior_predictive", "s"), ("observed_data", "s")]:
        assert list(prior[group][name]["cell"].values) == ["a", "b", "c"]
    assert list(prior["constant_data"]["t_released"]["cell"].values) == ["a", "b", "c"]


def test_a_density_of_joint_noise_has_no_dim_for_the_axis_of_its_noise(model):
    LInfMechanism(1.0).potential("s", model["table"], released=RELEASED)
    assert model.named_vars_to_dims["s_released"] == ("cell",)
    assert "s" not in model.named_vars_to_dims
    LInfMechanism(1.0).observe("t", model["table"], released=RELEASED)
    assert model.named_vars_to_dims["t"] == ("cell",)


def test_a_release_of_another_shape_than_the_statistic_has_not_its_dims():
    with pm.Model(coords={"sum": ["x", "y", "xy", "xx"], "line": ["slope", "intercept"]}) as model:
        sums = pm.Deterministic("sums", pt.as_tensor([1.0, 2.0, 3.0, 4.0]), dims="sum")
        NoisyStats(1.0, 9).observe("a", sums, released=[1, 2])
        NoisyStats(1.0, 9).observe("b", sums, released=[1, 2], dims="line")
    assert "a" not in model.named_vars_to_dims
    assert model.named_vars_to_dims["b"] == ("line",)


@pytest.mark.parametrize("how", ["potential", "observe"])
def test_the_keyword_is_released(model, how):
    add = getattr(LaplaceMechanism(1.0), how)
    for wrong in ({}, {"observed": RELEASED}, {"released": RELEASED, "observed": RELEASED}):
        with pytest.raises(TypeError, match=r'Write mechanism\..*\("privacy", .*released=\.\.\.\)'):
            add("t", model["table"], **wrong)


@pytest.mark.parametrize("how", ["potential", "observe"])
@pytest.mark.parametrize(
    ("released", "error", "message"),
    [
        (
            np.ma.masked_array(RELEASED, [0, 1, 0]),
            ValueError,
            r"masked entries, 1 of 3: .*statistic\[known\]",
        ),
        ([1j, 2, 3], TypeError, "must be an array of real numbers, got a list of dtype complex128"),
        (["10", "12", "8"], TypeError, "must be an array of real numbers"),
        ([[1, 2], [3]], TypeError, "must be an array of real numbers"),
        (None, TypeError, "must be an array of real numbers, got None"),
        (
            pt.vector("v"),
            TypeError,
            "must be the published numbers.* got a TensorVariable 'v'. Did you swap",
        ),
    ],
)
def test_what_is_no_release_is_refused(model, how, released, error, message):
    with pytest.raises(error, match=f"'s': the release .*{message}"):
        getattr(LaplaceMechanism(1.0), how)("s", model["table"], released=released)
    assert "s" not in model.named_vars
    assert "s_released" not in model.named_vars


@pytest.mark.parametrize(
    "released", [np.ma.masked_array(RELEASED, [0, 0, 0]), pt.constant([10, 12, 8])]
)
def test_what_has_one_meaning_is_taken(model, released):
    LaplaceMechanism(1.0).potential("s", model["table"], released=released)
    np.testing.assert_array_equal(model["s_released"].get_value(), RELEASED)


@pytest.mark.parametrize("how", ["potential", "observe"])
def test_name_and_statistic_swapped_are_told_apart(model, how):
    message = rf'the name comes first, got {{}}.* Write {how}\("privacy", statistic, released='
    add = getattr(LaplaceMechanism(1.0), how)
    with pytest.raises(TypeError, match=message.format("a Deterministic|a TensorVariable 'table'")):
        add(model["table"], "s", released=RELEASED)
    with pytest.raises(TypeError, match="name and statistic are swapped"):
        add(model["table"], "s", released=RELEASED)
    with pytest.raises(ValueError, match="name must not be empty"):
        add("", model["table"], released=RELEASED)


@pytest.mark.parametrize("statistic", [None, "table", np.array([pt.scalar(), pt.scalar()]), 1j])
@pytest.mark.parametrize("call", ["potential", "observe", "logp"])
def test_what_is_no_statistic_is_refused(model, call, statistic):
    calls = {
        "potential": lambda m: m.potential("s", statistic, released=RELEASED),
        "observe": lambda m: m.observe("s", statistic, released=RELEASED),
        "logp": lambda m: m.logp(RELEASED, statistic),
    }
    with pytest.raises(TypeError, match="a statistic must be a tensor, or an array, of real"):
        calls[call](LaplaceMechanism(1.0))


@pytest.mark.parametrize(
    ("statistic", "error", "message"),
    [
        (np.ma.masked_array(RELEASED, [0, 1, 0]), ValueError, "masked entries, 1 of 3"),
        (None, TypeError, "the statistic must be an array of real numbers, got None"),
        ("a", TypeError, "the statistic must be an array of real numbers, got 'a'"),
        ([1j], TypeError, "real numbers"),
    ],
)
def test_what_can_not_be_released_is_refused(statistic, error, message):
    with pytest.raises(error, match=message):
        LaplaceMechanism(1.0).release(statistic)


def test_a_seed_that_is_none_is_refused():
    with pytest.raises(TypeError, match=r"random_seed must be a whole number .*, got 1\.5"):
        LaplaceMechanism(1.0).release(1, random_seed=1.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: NoisyMaxMechanism(pt.scalar("s"), 3),
            r"scale must be known, got a TensorVariable 's', which is symbolic\. "
            r"Only LaplaceMechanism, GaussianMechanism",
        ),
        (
            lambda: GaussianMechanism(ZCDP(0.5)),
            r"sigma must be a number, got the budget ZCDP\(rho=0\.5, .*write calibrate\(budget, ",
        ),
        (
            lambda: LaplaceMechanism(1.0, clamp=(0, None)),
            r"no argument 'clamp', .*write LaplaceMechanism\(\.\.\.\)\.clamped\(lower, upper\)",
        ),
        (lambda: LaplaceMechanism(1.0, rounding=True), r"Mechanism\(\.\.\.\)\.rounded\(\)"),
        (
            lambda: LaplaceMechanism(1.0).clamped([0, 0], [5, 9]),
            r"lower must be a number for all entries, .*got a list. For entries with limits of "
            r"their own, give each its own mechanism, as in "
            r".*statistic\[0\], released=released\[0\]",
        ),
    ],
)
def test_what_a_mechanism_can_not_be_made_of_is_answered_with_what_to_write(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: LaplaceMechanism(epsilon=1),
            r"LaplaceMechanism has no argument 'epsilon', but scale, budget\. To "
            r"choose .* write LaplaceMechanism\.calibrate\(budget, sensitivity=\.\.\.\)",
        ),
        (lambda: GaussianMechanism(std=1), "no argument 'std', but sigma"),
        (lambda: TulapMechanism(delta=1), r"write TulapMechanism\.calibrate\(budget\)"),
        (lambda: RandomizedResponse(p=1), r"RandomizedResponse\.calibrate\(budget, categories="),
        (lambda: LInfMechanism(norm=2), r"no argument 'norm', but scale"),
        (lambda: CustomMechanism(logp=max), r"no argument 'logp', but log_density.*budget\.$"),
    ],
)
def test_an_argument_of_another_name_is_answered_with_those_there_are(make, message):
    with pytest.raises(TypeError, match=message):
        make()


@pytest.mark.parametrize(
    ("values", "rows", "length", "message"),
    [
        ([1.0, 2.0], [0, 4], 4, "rows must be whole numbers from 0 to 3"),
        ([1.0, 2.0], [0, -1], 4, "rows must be whole numbers from 0 to 3"),
        ([1.0, 2.0], [3, 3], 4, "rows must be different, but 3 is there twice"),
        ([1.0, 2.0], [3], 4, "a value for each row: 1 rows"),
        ([1.0], [0.5], 4, "rows must be whole numbers"),
        (["a"], [0], 4, "values must be an array of real numbers"),
        ([1.0], [0], 0, "length must be"),
    ],
)
def test_rows_that_do_not_exist_are_refused(values, rows, length, message):
    with pytest.raises((TypeError, ValueError), match=message):
        published_rows(values, rows, length)


def test_rows_that_are_not_there_are_masked():
    table = published_rows([[1.0, 2], [3, 4]], [2, 0], 3)
    np.testing.assert_array_equal(table.mask[:, 0], [False, True, False])
    np.testing.assert_array_equal(table.filled(0), [[3, 4], [0, 0], [1, 2]])


# Named dims ---------------------------------------------------------------------------------------

SQUARE = np.arange(4.0).reshape(2, 2)
LABELS = {"sex": ["f", "m"], "age": ["young", "old"]}


@pytest.fixture(params=[pm, pmdims], ids=["plain", "named"])
def square(request):
    """A statistic of which a release in another order would fit in shape."""
    with pm.Model(coords=LABELS):
        yield request.param.Normal("x", 0, 1, dims=("sex", "age"))


def test_a_release_with_dims_is_put_in_the_order_of_the_statistic(square):
    turned = xarray.DataArray(SQUARE, dims=("age", "sex"))
    LaplaceMechanism(1.0).potential("t", square, released=turned)
    model = pm.modelcontext(None)
    np.testing.assert_array_equal(model["t_released"].get_value(), SQUARE.T)


@pytest.mark.parametrize("by", ["dims", "the statistic"])
def test_what_pandas_labels_is_taken_by_its_labels(model, by):
    statistic, dims = (model["table"] + 0, "cell") if by == "dims" else (model["table"], None)
    shuffled = pd.Series([8, 10, 12], index=["c", "a", "b"])
    LaplaceMechanism(1.0).potential("s", statistic, released=shuffled, dims=dims)
    np.testing.assert_array_equal(model["s_released"].get_value(), RELEASED)
    LaplaceMechanism(1.0).potential("t", statistic, released=pd.Series(RELEASED), dims=dims)
    np.testing.assert_array_equal(model["t_released"].get_value(), RELEASED)
    other = pd.Series(RELEASED, index=["a", "b", "d"])
    with pytest.raises(ValueError, match=r"'u': the release has other labels.*to_numpy\(\)"):
        LaplaceMechanism(1.0).potential("u", statistic, released=other, dims=dims)


@pytest.mark.parametrize("of", [pd.Series, xarray.DataArray.from_series])
def test_labels_in_another_order_are_refused_where_nothing_says_the_statistics_dims(model, of):
    series = pd.Series(RELEASED, index=pd.Index(["a", "b", "c"], name="cell"))
    LaplaceMechanism(1.0).potential("s", model["table"] + 0, released=of(series))
    np.testing.assert_array_equal(model["s_released"].get_value(), RELEASED)
    with pytest.raises(ValueError, match=r"'t': .* another order .* dims=\('cell',\)"):
        LaplaceMechanism(1.0).potential("t", model["table"] + 0, released=of(series[::-1]))


def test_rows_and_columns_of_a_data_frame_are_labels(square):
    frame = pd.DataFrame(SQUARE, index=LABELS["sex"], columns=LABELS["age"])
    upside = frame.loc[["m", "f"], ["old", "young"]]
    LaplaceMechanism(1.0).potential("t", square, released=upside)
    model = pm.modelcontext(None)
    np.testing.assert_array_equal(model["t_released"].get_value(), SQUARE)


def test_a_release_with_labels_is_put_in_the_order_of_the_models(square):
    upside = xarray.DataArray(SQUARE, dims=("sex", "age"), coords={"sex": ["m", "f"]})
    LaplaceMechanism(1.0).potential("t", square, released=upside)
    model = pm.modelcontext(None)
    np.testing.assert_array_equal(model["t_released"].get_value(), SQUARE[::-1])
    with pytest.raises(ValueError, match=r"'u': the release has other labels along dim 'sex'.*'n'"):
        LaplaceMechanism(1.0).potential("u", square, released=upside.assign_coords(sex=["m", "n"]))


def test_dims_in_another_order_than_the_statistics_are_refused(square):
    mechanism = LaplaceMechanism(1.0)
    for add in (mechanism.potential, mechanism.observe):
        with pytest.raises(ValueError, match=r"'t': the statistic, .*'sex', 'age'.*transpose it"):
            add("t", square, released=SQUARE, dims=("age", "sex"))
    with pytest.raises(ValueError, match=r"'t': the statistic, .*transpose it"):
        mechanism.generate("t", square, dims=("age", "sex"))


def test_a_noise_scale_with_named_dims_is_refused_and_one_without_taken():
    with pm.Model(coords=LABELS):
        scale = pmdims.HalfNormal("scale", 1.0, dims="sex")
        single = pmdims.HalfNormal("single", 1.0)
    labelled = pd.Series([1.0, 2.0], index=LABELS["sex"])
    for each in (scale, xarray.DataArray([1.0, 2.0], dims="sex"), labelled):
        with pytest.raises(TypeError, match=r"scale has named dims.*scale\.values"):
            LaplaceMechanism(each)
    assert LaplaceMechanism(pd.Series([1.0, 2.0])).scale.tolist() == [1.0, 2.0]
    [unknown] = LaplaceMechanism(single).unknown
    assert unknown.owner.inputs == [single]
