"""Tabulated models: their log-densities against all data sets that a table stands for.

Records that depend on others, marginalised given these.
"""

from itertools import pairwise

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy.special import logsumexp, softmax

import pymc_dapper as pmd
from pymc_dapper.tabulation import model as of_tables
from pymc_dapper.tabulation import reading
from pymc_dapper.tabulation.choice import table_if_cheaper
from pymc_dapper.tabulation.errors import TabulationError
from pymc_dapper.tabulation.model import last_of, read_by_entry, tabulate
from pymc_dapper.tabulation.writer import variables_maybe_invalid
from tests.long_cases import one_in_three
from tests.tabulation import tabulable
from tests.tabulation.tabulable import FORMS, differences, log_density

N, K, CLASSES = 5, 3, 2
ANSWERS = np.array([[0, 1, 2], [2, 2, 0], [0, 1, 2], [1, 1, 1], [2, 0, 0]])
KEPT = np.where(np.eye(3), 0.7, 0.15)
"""The law of an answer, given the true category."""


def classes(n=N, answers=ANSWERS, *, columns=False):
    """Three categories of each person, whose probabilities depend on a class and an ability."""
    with pm.Model() as model:
        w = pm.Dirichlet("w", np.ones(CLASSES))
        ability = pm.Normal("ability", 0, 1, shape=n)
        level = pm.Normal("level", 0, 1, shape=(CLASSES, K, 3))
        z = pm.Categorical("z", w, shape=n)
        logits = level[z] + ability[:, None, None] * np.arange(3)
        mechanism = pmd.RandomizedResponse(0.7, categories=3)
        if not columns:
            x = pm.Categorical("x", logit_p=logits, shape=(n, K))
            mechanism.observe("answer", x, released=answers)
            return model
        for k in range(K):
            x = pm.Categorical(f"x{k}", logit_p=logits[:, k], shape=n)
            mechanism.potential(f"answer{k}", x, released=answers[:, k])
    return model


def log_likelihood(w, ability, level):
    """Sum over the class and the categories of each person."""
    found = 0.0
    for a, answers in zip(ability, ANSWERS, strict=True):
        p = softmax(level + a * np.arange(3), axis=-1)
        found += np.log(w @ np.prod([p[:, k] @ KEPT[:, answers[k]] for k in range(K)], axis=0))
    return found


def evaluated(model, point):
    [likelihood] = [x for x in model.potentials if hasattr(x.tag, "of_answers")]
    inputs = [model[name] for name in point]
    function = model.compile_fn(
        likelihood.sum(), inputs=inputs, mode="FAST_COMPILE", point_fn=False
    )
    return function(*point.values())


@pytest.fixture
def point():
    rng = np.random.default_rng(3)
    level = rng.normal(size=(CLASSES, K, 3))
    return {"w": np.array([0.3, 0.7]), "ability": rng.normal(size=N), "level": level}


@pytest.mark.parametrize("columns", [False, True])
def test_classes_and_answers_are_summed_over(columns, point):
    tabulated = pmd.tabulate(classes(columns=columns))
    assert [rv.name for rv in tabulated.free_RVs] == ["w", "ability", "level"]
    assert evaluated(tabulated, point) == pytest.approx(log_likelihood(**point), rel=1e-12)


def test_a_fault_is_found_before_sampling(monkeypatch, point):
    real = of_tables.conditional_law

    def of_other_answers(records, priors, answers, values, possible):
        return real(records, priors, [0.9 * x for x in answers], values, possible)

    monkeypatch.setattr(of_tables, "conditional_law", of_other_answers)
    with pytest.raises(TabulationError, match="can't stand for the records 'x'"):
        pmd.tabulate(classes())
    monkeypatch.setattr("pymc_dapper.tabulation.model.compare", lambda *_: None)
    assert abs(evaluated(pmd.tabulate(classes()), point) - log_likelihood(**point)) > 0.01


def test_impossible_parameters_stay_impossible(point):
    def written(high):
        with pm.Model() as model:
            z = pm.Bernoulli("z", 0.5, shape=4)
            x = pm.Bernoulli("x", pm.Flat("low") + high * z, shape=4)
            pmd.RandomizedResponse(0.7, categories=2).observe("answer", x, released=[0, 1, 1, 0])
        return pmd.tabulate(model)

    assert evaluated(written(0.5), {"low": np.array(0.1)}) == pytest.approx(
        2 * np.log(0.5 * (0.1 * 0.3 + 0.9 * 0.7) + 0.5 * (0.6 * 0.3 + 0.4 * 0.7))
        + 2 * np.log(0.5 * (0.1 * 0.7 + 0.9 * 0.3) + 0.5 * (0.6 * 0.7 + 0.4 * 0.3))
    )
    # Of the class 1, no record is possible.
    assert evaluated(written(1.5), {"low": np.array(0.1)}) == pytest.approx(
        2 * np.log(0.5 * (0.1 * 0.3 + 0.9 * 0.7)) + 2 * np.log(0.5 * (0.1 * 0.7 + 0.9 * 0.3))
    )


def test_what_else_sees_entries_is_refused():
    with pm.Model() as model:
        z = pm.Bernoulli("z", 0.5, shape=4)
        x = pm.Bernoulli("x", 0.2 + 0.5 * z, shape=4)
        y = pm.Bernoulli("y", 0.2 + 0.5 * x, shape=4)
        pm.Potential("sum", -1.0 * y.sum())
    assert last_of([z, x, y]) is y
    assert last_of([z, x]) is x
    assert last_of([z, y]) is y
    assert last_of([z]) is None
    with pytest.raises(TabulationError, match="entries of 'y' don't have factors of their own"):
        read_by_entry(model, y)
    with pytest.raises(TabulationError, match="'y' depends on 'x'"):
        read_by_entry(model, x)


def test_people_of_classes_are_marginalised_by_themselves():
    answers = np.random.default_rng(0).integers(0, 3, (400, K))
    table = table_if_cheaper(classes(400, answers), None, ())
    assert (table.counts, table.names, table.factors) == ([], "'z', 'x'", ["answer"])
    assert table.of_people == ["ability"]


def test_a_class_that_is_counted_keeps_its_answers_in_the_table():
    with pm.Model() as model:
        z = pm.Bernoulli("z", pm.Beta("p", 2, 2), shape=6)
        x = pm.Bernoulli("x", pt.as_tensor([[0.2, 0.4], [0.7, 0.9]])[z], shape=(6, 2))
        mechanism = pmd.RandomizedResponse(0.7, categories=2)
        mechanism.observe("answer", x, released=np.array([[0, 1], [1, 1]] * 3))
        pmd.GaussianMechanism(1.0).potential("total", z.sum(), released=2.5)
    tabulated = pmd.tabulate(model)
    assert [rv.name for rv in tabulated.free_RVs] == ["p", "z_count"]
    assert tabulated["z_count"].eval(mode="FAST_COMPILE").shape == (2,)


TOLERANCE = 1e-10


@pytest.mark.parametrize("write", one_in_three(FORMS), ids=lambda write: write.__name__)
def test_density_is_that_of_all_data_sets_behind_a_table(write):
    form = write()
    tabulated = tabulate(form.model, [form.model[name] for name in form.values])
    assert set(tabulated.value_vars).isdisjoint(form.model.value_vars)
    assert np.max(np.abs(differences(form, tabulated))) < TOLERANCE


@pytest.mark.parametrize("noisy", [True, False], ids=["counted", "marginalised"])
def test_parameters_that_are_invalid_are_impossible(noisy):
    z = np.array([0.0, 1.0, 0.0, 1.0])
    with pm.Model() as model:
        a = pm.Normal("a", 0, 1)
        x = pm.Bernoulli("x", 0.5 + a * z)
        pmd.RandomizedResponse(0.7, categories=2).observe("answer", x, released=[0, 1, 1, 1])
        if noisy:
            pm.Potential("privacy", -1.0 * x.sum())
    tabulated = log_density(tabulate(model))
    counts = {"x_count": np.array([1, 0, 1])} if noisy else {}
    assert np.isfinite(tabulated({"a": np.array(0.4), **counts}))
    assert tabulated({"a": np.array(0.6), **counts}) == -np.inf
    assert log_density(model)({"a": np.array(0.6), "x": np.ones(4, dtype=int)}) == -np.inf


def _made_invalid(noisy):
    """A model in which one value of ``x`` may make the probability of ``y`` invalid."""
    answers = np.array([0, 1, 1])
    with pm.Model() as model:
        a = pm.Normal("a", 0, 1)
        x = pm.Bernoulli("x", 0.3, shape=3)
        y = pm.Bernoulli("y", 0.5 + a * x)
        pmd.RandomizedResponse(0.7, categories=2).observe("answer", y, released=answers)
        if noisy:
            pm.Potential("privacy", -1.0 * (x * y).sum())
    return tabulable.Form(model, {"x": range(2), "y": range(2)}, list(answers), table=False)


@pytest.mark.parametrize("a", [0.3, 0.9])
def test_values_that_make_others_invalid_are_impossible(a):
    form = _made_invalid(noisy=False)
    found = log_density(tabulate(form.model))({"a": np.array(a)})
    of_records = log_density(form.model)
    logs = [float(of_records({"a": np.array(a), **records})) for records in form.data_sets()]
    assert np.isneginf(logs).any() == (a > 0.5)
    assert abs(found - logsumexp(logs)) < TOLERANCE


def test_impossible_values_with_large_likelihoods_are_left_out():
    answers = np.array([0.0, 1.0, 1.0])
    with pm.Model() as model:
        scale = pm.HalfNormal("scale", 1)
        x = pm.Categorical("x", p=[0.0, 0.4, 0.6], shape=3)
        pm.Normal("answer", x, 0.01 * scale, observed=answers)
    form = tabulable.Form(model, {"x": range(3)}, [0, 1, 1], table=False)
    found = log_density(tabulate(model, [x]))({"scale_log__": np.array(0.0)})
    of_records = log_density(model)
    point = {"scale_log__": np.array(0.0)}
    logs = [float(of_records({**point, **records})) for records in form.data_sets()]
    assert abs(found / logsumexp(logs) - 1) < TOLERANCE


def test_tables_whose_probabilities_may_be_invalid_are_refused():
    with pytest.raises(
        TabulationError, match="'y': for some values of the records, the probabilities may be"
    ):
        tabulate(_made_invalid(noisy=True).model)


def _sensitivity(x):
    return pm.Beta("hit", 9, 1) * x + (1 - pm.Uniform("correct", 0.5, 1)) * (1 - x)


def _logits(x):
    return pm.math.sigmoid(pm.Normal("b", 0, 1, shape=2)[x])


def _probits(x):
    return pm.math.invprobit(pm.Normal("b") * x)


def _decay(x):
    return pt.exp(-pm.HalfNormal("b") * x)


@pytest.mark.parametrize("chance", [_sensitivity, _logits, _probits, _decay])
def test_probabilities_that_are_valid_by_what_they_are(chance):
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.4, shape=5)
        y = pm.Bernoulli("y", chance(x), shape=5)
        pm.Potential("privacy", -1.0 * y.sum())
    assert variables_maybe_invalid(reading.read_table(model, [x, y])) == []


# -- what a person sees ----------------------------------------------------------------------------


def test_tables_have_names_and_coords_that_a_person_knows():
    with pm.Model(coords={"cell": list("abcd")}) as model:
        p = pm.Dirichlet("p", np.ones(4), dims="cell")
        record = pm.Categorical("record", p=p, shape=330_000_000)
        table = pmd.statistics.counts(record, 4)
        released = [1e8, 1e8, 6e7, 7e7]
        pmd.GaussianMechanism(100.0).potential("privacy", table, released=released)
        pm.Deterministic("share", table.value[0] / 330_000_000)
    tabulated = tabulate(model)
    assert tabulated.named_vars_to_dims["record_counts"] == ("cell",)
    assert [rv.name for rv in tabulated.free_RVs] == ["p", "record_counts"]
    assert {x.name for x in tabulated.deterministics} == {"share"}
    assert tabulated["privacy"].tag.mechanism is model["privacy"].tag.mechanism
    assert tabulated.initial_point()["record_counts"].sum() == 330_000_000

    grouped = tabulate(tabulable.covariate().model)
    assert grouped.named_vars_to_dims["y_count"] == ("y_row",)
    assert list(grouped.coords["y_row"]) == ["-1", "0.5", "2"]
    several = tabulate(tabulable.two_variables().model)
    assert several.named_vars_to_dims["sex_status_counts"] == ("sex_value", "status_value")


def test_deterministics_keep_their_dims():
    with pm.Model(coords={"cell": list("abc"), "place": ["north", "south"]}) as model:
        model.add_coord("half", length=2)
        p = pm.Dirichlet("p", np.ones(3), dims="cell")
        odds = pm.Deterministic("odds", p / (1 - p), dims="cell")
        record = pm.Categorical("record", p=p, shape=300)
        counts = pmd.statistics.counts(record, 3).value
        pm.Deterministic("scaled", np.ones((2, 1)) * counts, dims=("place", "cell"))
        pm.Deterministic("pairs", odds[:2] * counts[0], dims="half")
        pm.Potential("privacy", -((counts - 50.0) ** 2), dims="cell")
    tabulated = tabulate(model)
    for name in ("odds", "scaled", "pairs", "privacy"):
        assert tabulated.named_vars_to_dims[name] == model.named_vars_to_dims[name]
    assert {x.name for x in tabulated.deterministics} == {"odds", "scaled", "pairs"}
    assert [x.name for x in tabulated.potentials] == ["privacy"]
    assert list(tabulated.coords["place"]) == ["north", "south"]


def test_data_stay_data():
    form = tabulable.data_covariate()
    tabulated = tabulate(form.model)
    assert np.array_equal(tabulated["z_rows"].get_value(), [-1.0, 0.5])
    # Rows with other covariates: those of the records in them.
    new = np.array([2.0, -0.3])
    pm.set_data({"z_rows": new}, model=tabulated)
    pm.set_data({"z": new[form.rows]}, model=form.model)
    assert np.max(np.abs(differences(form, tabulated))) < TOLERANCE


def test_starts_are_counted():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.3, shape=5, initval=[1, 1, 0, 1, 1])
        z = np.array([2.0, 1.0, 1.0, 1.0, 2.0])
        pm.Potential("privacy", -(((z * x).sum() - 3.0) ** 2))
    assert np.array_equal(tabulate(model).initial_point()["x_count"], [2, 2])


def test_starts_are_counted_in_linked_tables():
    form = tabulable.chain()
    starts = {"a": [0, 2], "b": [1, 0], "c": [1, 2]}
    for names in ("abc", "ac"):
        for name in names:
            form.model.set_initval(form.model[name], np.array(starts[name]))
        for name in set("abc") - set(names):
            form.model.set_initval(form.model[name], None)
        tabulated = tabulate(form.model)
        found, records = tabulated.initial_point(), {x: np.array(starts[x]) for x in "abc"}
        for name, table in form.counts(records).items():
            assert np.array_equal(found[name], table) == (names == "abc" or name == "a_counts")
        # The others agree with those they have columns in common with.
        assert np.isfinite(log_density(tabulated)(found))


@pytest.mark.parametrize("n", [2 * 256 + 1, 820])
def test_few_people_for_each_cell_have_a_start(n):
    """PyMC would round 1.6 people in each of 16 cells to two, and take all too many from one."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones((2, 16, 16)))
        a = pm.Categorical("a", np.full(16, 1 / 16), shape=n)
        b = pm.Categorical("b", p[0][a])
        c = pm.Categorical("c", p[1][b])
        for name, pair in {"ab": (a, b), "bc": (b, c)}.items():
            table = pmd.statistics.joint_counts(pair, (16, 16))
            pmd.GaussianMechanism(2.0).potential(name, table, released=np.full((16, 16), n / 256))
    tabulated = tabulate(model)
    start = tabulated.initial_point()
    for name in ("a_counts", "a_b_counts", "b_c_counts"):
        assert start[name].sum() == n
    assert np.array_equal(start["a_b_counts"].sum(axis=0), start["b_c_counts"].sum(axis=1))
    assert np.ptp(start["a_b_counts"]) <= 1
    assert np.isfinite(log_density(tabulated)(start))


@pytest.mark.parametrize(("n", "even"), [(26, True), (1_600, False)])
def test_one_table_starts_evenly_only_where_pymc_has_no_start(n, even):
    group = np.repeat([0, 1], [n, 2_000])
    shares = np.stack([np.full(16, 1 / 16), np.arange(1, 17) / 136])
    with pm.Model() as model:
        x = pm.Categorical("x", shares[group], shape=len(group))
        table = pmd.statistics.cross_counts(pt.as_tensor(group), x, 2, 16)
        pmd.GaussianMechanism(2.0).potential("privacy", table, released=np.full((2, 16), 50.0))
    many, few = tabulate(model).initial_point()["x_counts"]
    assert (few.sum(), many.sum()) == (n, 2_000)
    assert np.ptp(few) <= 1
    assert (np.ptp(many) <= 1) == even


def test_linked_tables_have_the_coords_of_their_variables():
    with pm.Model(coords={"city": ["Bonn", "Oslo"], "colour": list("rgb")}) as model:
        p = pm.Dirichlet("p", np.ones(2), dims="city")
        q = pm.Dirichlet("q", np.ones((2, 3)), dims=("city", "colour"))
        r = pm.Dirichlet("r", np.ones((3, 2)), dims=("colour", "city"))
        born = pm.Categorical("born", p, shape=10**9)
        likes = pm.Categorical("likes", q[born])
        lives = pm.Categorical("lives", r[likes])
        for name, pair, sizes in (("1", (born, likes), (2, 3)), ("2", (likes, lives), (3, 2))):
            table = pmd.statistics.joint_counts(pair, sizes)
            pmd.GaussianMechanism(2.0).potential(name, table, released=np.full(sizes, 1e9 / 6))
    dims = tabulate(model).named_vars_to_dims
    assert dims["born_counts"] == ("city",)
    assert dims["born_likes_counts"] == ("city", "colour")
    assert dims["likes_lives_counts"] == ("colour", "lives_value")


def test_a_chain_of_many_columns_takes_a_moment():
    """Nothing is made of the size of the 10^12 joint values, or of the number of people."""
    n_columns, size = 8, 32
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones((n_columns, size, size)))
        columns = [pm.Categorical("x0", p[0, 0], shape=10**9)]
        for k in range(1, n_columns):
            columns.append(pm.Categorical(f"x{k}", p[k][columns[-1]]))
            table = pmd.statistics.joint_counts(columns[-2:], (size, size))
            released = np.full((size, size), 1e5)
            pmd.GaussianMechanism(9.0).potential(f"t{k}", table, released=released)
    tabulated = tabulate(model)
    names = ["p", "x0_counts", *(f"x{k - 1}_x{k}_counts" for k in range(1, n_columns))]
    assert [rv.name for rv in tabulated.free_RVs] == names
    found = tabulated.initial_point()
    assert all(found[name].shape == (size, size) for name in names[2:])
    for first, second in pairwise(names[2:]):
        assert np.array_equal(found[first].sum(axis=0), found[second].sum(axis=1))


def test_joint_values_may_be_counted_by_bincount():
    with pm.Model() as model:
        x = pm.Categorical("x", pm.Dirichlet("p", np.ones(3)), shape=10**6)
        y = pm.Bernoulli("y", pm.Beta("q", 1, 1, shape=3)[x])
        table = pt.bincount(2 * x + y, minlength=6)
        pmd.GaussianMechanism(5.0).potential("table", table, released=np.full(6, 1e6 / 6))
    assert [rv.name for rv in tabulate(model).free_RVs] == ["p", "q", "x_counts", "x_y_counts"]


def test_variables_that_nothing_links_are_counted_apart():
    """Six answers of each person have 2^6 joint values, and aren't counted together."""
    with pm.Model() as model:
        ability = pm.Normal("ability", 0, 1, shape=5)
        each = pmd.RandomizedResponse(0.7, categories=2)
        for k in range(6):
            x = pm.Bernoulli(f"x{k}", logit_p=ability - k, shape=5)
            each.observe(f"answer{k}", x, released=[0, 1, 1, 0, k % 2])
        y = pm.Bernoulli("y", 0.3, shape=5)
        z = pm.Binomial("z", 2, 0.3 + 0.2 * y, shape=5)
        pmd.LaplaceMechanism(1.0).potential("sum", z.sum(), released=4.0)
    tabulated = tabulate(model)
    assert [rv.name for rv in tabulated.free_RVs] == ["ability", "y_counts", "y_z_counts"]
    a = np.array([0.3, -1.0, 0.0, 2.0, 0.5])
    density = tabulated.compile_fn(
        [tabulated[f"answer{k}"] for k in range(6)],
        inputs=[tabulated["ability"]],
        mode="FAST_COMPILE",
        point_fn=False,
    )(a)
    for k, found in enumerate(density):
        chance, answers = 1 / (1 + np.exp(k - a)), np.array([0, 1, 1, 0, k % 2])
        yes = 0.7 * chance + 0.3 * (1 - chance)
        assert found == pytest.approx(np.log(np.where(answers, yes, 1 - yes)).sum(), abs=1e-12)


# -- refusals --------------------------------------------------------------------------------------


def _single_record(x):
    pm.Potential("privacy", -1.0 * x[3])


def _neighbours(x):
    pm.Potential("privacy", -1.0 * pt.abs(x[1:] - x[:-1]).sum())


def _order(x):
    pm.Potential("privacy", -1.0 * (pt.cumsum(x) ** 2).sum())


def _largest(x):
    pm.Potential("privacy", -1.0 * x.max())


def _numbers(x):
    pm.Potential("privacy", -1.0 * (np.arange(5) * x).sum())


def _symbolic_numbers(x):
    pm.Potential("privacy", -1.0 * (pt.arange(5) * x).sum())


def _free_weights(x):
    pm.Potential("privacy", -1.0 * (pm.Normal("w", 0, 1, shape=5) * x).sum())


def _kept(x):
    pm.Potential("privacy", -1.0 * x.sum())
    pm.Deterministic("twice", 2 * x)


def _child(x):
    pm.Potential("privacy", -1.0 * x.sum())
    pm.Normal("y", x, 1)


@pytest.mark.parametrize(
    ("see", "message"),
    [
        (_single_record, "'privacy' depends on single records"),
        (_neighbours, "'privacy' depends on the records in another way than through sums"),
        (_order, "orders or accumulates"),
        (
            _largest,
            "else than a sum, as pt.bincount does if values, or pm.Data, may pass minlength=",
        ),
        (_numbers, "as many distinct rows as there are records"),
        (_symbolic_numbers, "distinguished by their row numbers"),
        (_free_weights, "'w', which is free and has an entry for each"),
        (_kept, "'twice' has a value for each record"),
        (_child, "'y', which is free, depends on 'x'"),
    ],
)
def test_records_that_are_told_apart_are_refused(see, message):
    with pm.Model() as model:
        see(pm.Bernoulli("x", 0.3, shape=5))
    with pytest.raises(TabulationError, match=message):
        tabulate(model, [model["x"]])


def test_records_of_many_values_are_refused():
    with pm.Model() as model:
        x = pm.Normal("x", 0, 1, shape=5)
        y = pm.DiscreteUniform("y", 0, 999, shape=5)
        one = pm.Bernoulli("one", 0.5, shape=1)
        pm.Potential("privacy", -1.0 * x.sum() * y.sum() * one.sum())
    for name, message in (
        ("x", "'x': not of a discrete distribution with few values"),
        ("y", "1000 values"),
        ("one", "single"),
    ):
        with pytest.raises(TabulationError, match=message):
            tabulate(model, [model[name]])
    with pm.Model() as without:
        pm.Normal("x")
    with pytest.raises(TabulationError, match="no latent records"):
        tabulate(without)
