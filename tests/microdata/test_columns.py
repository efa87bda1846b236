import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

import pymc_dapper as pmd
from docs import pages
from pymc_dapper.microdata import graphical, latent_classes, regressions
from pymc_dapper.microdata.columns import read_columns
from tests.evaluated_in_python import evaluated_in_python
from tests.microdata.releases import ALL_PAIRS, CHAIN, release

GIVEN = release(200, CHAIN)
QUIET = {"progressbar": False, "compute_convergence_checks": False}


def query(values, dims, sigma=2.0, name="table"):
    return pmd.Query(name, np.asarray(values, dtype=float), pmd.GaussianMechanism(sigma), dims)


@pytest.mark.parametrize(
    "model", [graphical(GIVEN, n=200), latent_classes(GIVEN, n=200, classes=3)]
)
def test_a_model_has_the_labels_of_the_release(model):
    assert {x: list(model.coords[x]) for x in "abc"} == {
        "a": ["no", "yes"],
        "b": ["f", "m"],
        "c": ["x", "y"],
    }
    assert [x.name for x in model.potentials] == ["table_a * b", "table_b * c"]
    assert all(model[f"person_{x}"].type.shape == (200,) for x in "abc")
    assert all(model.named_vars_to_dims[f"p_{x}"][-1] == x for x in "abc")


def test_an_unknown_number_of_people_is_a_variable():
    total = pmd.Query("total", 203.0, pmd.GaussianMechanism(1.0))
    model = graphical(pmd.Release([*GIVEN, total]))
    assert [x.name for x in model.potentials] == ["total", "table_a * b", "table_b * c"]
    low, high = (
        x.eval(mode="FAST_COMPILE") for x in model["n"].owner.op.dist_params(model["n"].owner)
    )
    assert 190 < low < 203 < high < 216  # ten deviations about the total itself
    assert model["person_a"].type.shape == (int(high),)


def test_a_total_may_be_called_as_the_number_of_people():
    model = graphical(pmd.Release([*GIVEN, pmd.Query("n", 203.0, pmd.GaussianMechanism(1.0))]))
    assert [x.name for x in model.potentials] == ["table_n", "table_a * b", "table_b * c"]


def test_shares_of_a_column_are_the_mean_of_its_tables():
    hidden = pmd.GaussianMechanism(2.0).published_if(">=", 5.0)
    given = pmd.Release(
        [
            query([[30.0, -4.0], [10.0, 20.0]], ("a", "b"), name="ab"),
            pmd.Query("bc", np.array([[40.0, np.nan], [np.nan, 19.0]]), hidden, ("b", "c")),
            query([-1.0, -2.0], "d", sigma=50.0, name="d"),
        ]
    )
    columns = read_columns(given, 60)
    np.testing.assert_allclose(columns.shares("a"), np.array([30.5, 30.5]) / 61)
    of_b = np.array([40.5, 20.5]) / 61, np.array([40.5, 19.5]) / 60
    np.testing.assert_allclose(columns.shares("b"), np.mean(of_b, axis=0))
    np.testing.assert_allclose(columns.shares("d"), [0.5, 0.5])


def test_margins_of_any_order_are_of_the_same_people():
    released = {"abc": np.full((2, 2, 3), 10.0), "a": np.array([60.0, 60.0])}
    tables = [query(values, tuple(name), name=name) for name, values in released.items()]
    model = graphical(pmd.Release(tables), n=120)
    rng = np.random.default_rng(1)
    people = {f"person_{x}": rng.integers(0, 3 if x == "c" else 2, 120) for x in "abc"}
    found = model.compile_fn(
        model.logp(vars=model.potentials, sum=False),
        inputs=[model.rvs_to_values[model[name]] for name in people],
        mode="FAST_COMPILE",
    )(people)
    for values, (name, of_release) in zip(found, released.items(), strict=True):
        sizes = [3 if x == "c" else 2 for x in name]
        table = pmd.statistics.joint_counts([people[f"person_{x}"] for x in name], sizes).value
        expected = stats.norm(table, 2.0).logpdf(of_release)
        assert np.sum(values) == pytest.approx(expected.sum())


@pytest.mark.parametrize(
    ("given", "n", "message"),
    [
        ([query([60.0, 60.0], None)], 120, "'table': its axes have no names"),
        ([query([60.0, 60.0], ("chain",))], 120, "a column can't be called 'chain'"),
        ([query([60.0, 60.0], "n")], None, "a column can't be called 'n'"),
        ([query([120.0], "a")], 120, "'table': 'a' has only one category: leave that axis out"),
        ([query(np.ones((2, 0)), ("a", "b"))], 120, "'table': 'b' has no category: leave it out"),
        ([pmd.Query("total", 120.0, pmd.GaussianMechanism(2.0))], 120, "no table of a column"),
        ([query([60.0, 60.0], "a")], 240, "n is 240, but the cells of 'table' add up to 120"),
        ([query([120.0, 120.0], "a")], 120, "people who were counted twice"),
        (
            [query([60.0, 60.0], "a"), query([99.0, 99.0], "b", name="other")],
            None,
            "aren't of the same people: the cells of 'table' add up to 120 .* 'other' .* 198",
        ),
        (
            [pmd.Query("t", [60.0, 60.0], pmd.GaussianMechanism(2.0).rounded(10), "a")],
            None,
            "no table holds plain noisy counts",
        ),
        ([query([60.0, 60.0], "a")], 1.5, "n must be"),
        (
            [query([-60.0, -60.0], "a")],
            None,
            r"there is nobody: the cells of 'table' add up to -120 ± \d\.\d$",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(given, n, message):
    with pytest.raises((TypeError, ValueError), match=message):
        graphical(pmd.Release(given), n=n)


def test_something_else_than_a_release_is_refused():
    with pytest.raises(TypeError, match=r"release must be a pmd\.Release, got \[\]"):
        latent_classes([], n=10, classes=2)


def test_suppressed_and_rounded_tables_are_of_the_same_people():
    low = pmd.GaussianMechanism(2.0).published_if(">=", 10)
    suppressed = pmd.Query("s", np.ma.masked_array([60.0, np.nan], [0, 1]), low, "a")
    rounded = pmd.Query("r", [60.0, 10.0], pmd.GaussianMechanism(2.0).rounded(10), "b")
    model = graphical(pmd.Release([suppressed, rounded]), n=68)
    assert np.isfinite(model.compile_logp(mode="FAST_COMPILE")(model.initial_point()))


@pytest.mark.parametrize(
    ("rule", "told"),
    [
        (lambda noise: noise.rounded(5), "something from 90 to 110"),
        (lambda noise: noise.clamped(0, None), "100"),
        (lambda noise: noise.published_if(">=", 10), "something from 6[0-9] to 80"),
    ],
)
def test_a_table_under_rules_that_contradicts_n_is_refused(rule, told):
    mechanism, values = rule(pmd.GaussianMechanism(2.0)), [[30.0, 20.0], [25.0, 25.0]]
    if mechanism.suppresses:
        values = np.ma.masked_array([[30.0, 20.0], [20.0, np.nan]], [[0, 0], [0, 1]])
    release = pmd.Release([pmd.Query("t", values, mechanism, ("a", "b"))])
    for n in (15, 1000):
        with pytest.raises(ValueError, match=f"n is {n:,}, but the .* add up to {told}, with"):
            graphical(release, n=n)
    assert graphical(release, n=95).name == ""


def test_a_large_table_of_clamped_noise_is_of_few_people():
    """What its cells add up to is far above the number of people."""
    noise = pmd.GaussianMechanism(5.0).clamped(0, None)
    values = np.maximum(np.random.default_rng(0).normal(0, 5, (40, 40)), 0)
    values[0, 0] += 100
    assert graphical(pmd.Release([pmd.Query("t", values, noise, ("a", "b"))]), n=100).name == ""


def test_a_domain_of_many_cells_is_never_formed():
    """Ten columns of 16 categories have 1e12 cells together."""
    columns = [f"c{k}" for k in range(10)]
    pairs = [
        query(np.full((16, 16), 4.0), (a, b), name=f"{a} * {b}")
        for k, a in enumerate(columns)
        for b in columns[:k]
    ]
    given = pmd.Release(pairs)
    with pytest.raises(ValueError, match=r"1,099,511,627,776 cells.*regressions"):
        graphical(given, n=1024)
    model = latent_classes(given, n=1024, classes=2)
    assert len(model.potentials) == len(regressions(given, n=1024).potentials) == 45
    neighbours = [query for query in pairs if int(query.dims[0][1]) == int(query.dims[1][1]) + 1]
    assert len(graphical(pmd.Release(neighbours), n=1024).potentials) == 9
    assert len(ALL_PAIRS) == 3


@pytest.mark.long
def test_people_of_a_domain_of_many_cells_are_sampled_and_drawn():
    """Six columns of 100 categories have 1e12 cells together."""
    pairs = [(f"c{k}", f"c{k + 1}") for k in range(5)]
    tables = [query(np.full((100, 100), 0.01), pair, name=" * ".join(pair)) for pair in pairs]
    model = latent_classes(pmd.Release(tables), n=100, classes=2)
    with model:
        idata = pmd.sample(2, tune=2, chains=1, random_seed=1, **QUIET)
        sets = pmd.synthetic_data(idata, sets=2, random_seed=1)
    assert [frame.shape for frame in sets] == [(100, 7)] * 2


@pytest.mark.parametrize("way", range(3))
def test_models_on_the_page_are_the_ready_made_ones(way):
    """As they are written out there, but for shares that are rounded there."""
    page = (pages.DOCS / "microdata.md").read_text("utf-8")
    first, *others = [found["code"] for found in pages.BLOCK.finditer(page)]
    names = {}
    exec(first, names)
    given = names["release"]
    columns = read_columns(given, 400)
    shares = {x: columns.shares(x) for x in columns.labels}
    code = [each for each in others if "as written_out" in each][way]
    if "all_people = " in code:
        shown, code = code.split("\n", 1)
        exec(shown, names)
        assert names["all_people"] == {x: share.round(2).tolist() for x, share in shares.items()}
    exec(code, names | {"all_people": shares}, out := {})
    written_out = out["written_out"]
    of_release = (graphical, regressions, lambda *x, n: latent_classes(*x, n=n, classes=3))[way]
    rng = np.random.default_rng(1)
    point = {
        name: rng.integers(0, 2, x.shape) if name.startswith("person") else rng.normal(size=x.shape)
        for name, x in written_out.initial_point().items()
    }
    one, other = (
        model.compile_logp(mode="FAST_COMPILE")(point)
        for model in (written_out, of_release(given, n=400))
    )
    assert one == pytest.approx(other, rel=1e-12)


def test_people_whom_a_table_counts_where_nobody_can_be_are_refused():
    """A structural zero, and a table without noise: the error names the table and the columns."""
    with pm.Model() as model:
        a = pm.Categorical("person_a", [0.5, 0.5], shape=8)
        b = pm.Categorical("person_b", pt.constant([[1.0, 0.0], [0.5, 0.5]])[a], shape=8)
        pmd.invariant("a * b", pmd.statistics.joint_counts([a, b], [2, 2]), [[2, 2], [2, 2]])
    told = "no possible start for the records 'person_a', 'person_b': .* 'a \\* b' is still -inf"
    with evaluated_in_python(), pytest.raises(pm.exceptions.SamplingError, match=told):
        pmd.sample(2, tune=2, chains=1, model=model, dapper={"max_start_sweeps": 5}, **QUIET)
