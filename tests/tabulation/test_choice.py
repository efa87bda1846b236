"""When records are sampled as a table, and that nothing that is asked for gets lost."""

import logging

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper import sampling
from pymc_dapper.budget.written import ATTRIBUTE, ReleaseBudgets
from pymc_dapper.tabulation import choice
from pymc_dapper.tabulation.choice import (
    CELLS_PER_RECORD,
    CONJUGATE_PER_CELL,
    RECORDS_PER_CELL,
    table_if_cheaper,
    tables_if_cheaper,
)

MANY = 330_000_000


def table_model(n):
    with pm.Model(coords={"cell": list("abcd")}) as model:
        p = pm.Dirichlet("p", np.ones(4), dims="cell")
        record = pm.Categorical("record", p=p, shape=n)
        table = pmd.statistics.counts(record, 4)
        mechanism = pmd.DiscreteLaplaceMechanism.calibrate(pmd.PureDP(0.1), sensitivity=2)
        mechanism.potential("privacy", table, released=np.full(4, n // 4))
    return model


def test_operations_decide():
    most = 4 * RECORDS_PER_CELL
    assert table_if_cheaper(table_model(most), None, ()) is None
    table = table_if_cheaper(table_model(most + 1), None, ())
    assert (table.n_cells, table.names, table.factors) == (4, "'record'", ["privacy"])
    assert [rv.name for rv in table.counts] == ["record_counts"]


def test_a_table_that_takes_longer_is_not_written(monkeypatch):
    monkeypatch.setattr("pymc_dapper.tabulation.model.write_table", None)
    assert table_if_cheaper(table_model(4 * RECORDS_PER_CELL), None, ()) is None
    with pytest.raises(TypeError, match="not callable"):
        table_if_cheaper(table_model(4 * RECORDS_PER_CELL + 1), None, ())


def columns(n, law=None, pairs=((0, 1), (1, 2))):
    """Three columns; the last two by conditional tables with Dirichlet priors, or as ``law``."""
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones((2, 3, 3))) if law is None else law()
        x = [pm.Categorical("x0", np.full(3, 1 / 3), shape=n)]
        for k in range(2):
            x.append(pm.Categorical(f"x{k + 1}", p[k][x[k]]))
        for a, b in pairs:
            table = pmd.statistics.joint_counts((x[a], x[b]), (3, 3))
            mechanism = pmd.LaplaceMechanism(2.0)
            mechanism.potential(f"t{a}{b}", table, released=np.full((3, 3), n / 9))
    return model


def logits():
    return pm.math.softmax(pm.Normal("logits", 0, 1, shape=(2, 3, 3)), axis=-1)


@pytest.mark.parametrize(
    ("law", "pairs", "n_cells", "per_cell"),
    [
        (None, [(0, 1), (1, 2)], 18, CONJUGATE_PER_CELL),
        (None, [(0, 1), (1, 2), (0, 2)], 27, CONJUGATE_PER_CELL),
        (logits, [(0, 1), (1, 2)], 18, RECORDS_PER_CELL),
        (None, [(1, 2)], 18, RECORDS_PER_CELL),
    ],
    ids=["linked", "one table", "a regression", "a column that nothing was released of"],
)
def test_tables_with_dirichlet_priors_replace_fewer_people(law, pairs, n_cells, per_cell):
    """Their counts mix far better than records do."""
    most = n_cells * per_cell
    assert table_if_cheaper(columns(most, law, pairs), None, ()) is None
    assert table_if_cheaper(columns(most + 1, law, pairs), None, ()).n_cells == n_cells


def of_a_share(n, prior):
    """A yes-no column with a Beta prior, and one that depends on it."""
    with pm.Model() as model:
        x = pm.Bernoulli("x", pm.Beta("share", 1, 1), shape=n)
        y = prior(x)
        for name, column in (("x_sum", x), ("y_sum", y)):
            pmd.LaplaceMechanism(2.0).potential(name, column.sum(), released=n / 2)
    return model


@pytest.mark.parametrize(
    ("prior", "n_cells", "per_cell"),
    [
        (lambda x: pm.Categorical("y", pm.Dirichlet("p", np.ones((2, 3)))[x]), 6, 1),
        (lambda x: pm.Bernoulli("y", pm.Beta("p", 1, 1, shape=2)[x]), 4, RECORDS_PER_CELL),
    ],
    ids=["Beta and Dirichlet", "Beta alone"],
)
def test_beta_priors_do_beside_dirichlet_ones(prior, n_cells, per_cell):
    most = n_cells * per_cell
    assert table_if_cheaper(of_a_share(most, prior), None, ()) is None
    assert table_if_cheaper(of_a_share(most + 1, prior), None, ()).n_cells == n_cells


def numbers(n):
    with pm.Model() as model:
        k = pm.Binomial("k", 2, pm.Beta("p", 1, 1), shape=n)
        pmd.LaplaceMechanism(2.0).potential("s", k.sum(), released=n)
    return model


def outcomes(n):
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=2)
        x = pm.Bernoulli("x", pm.Beta("share", 1, 1), shape=n)
        pm.Bernoulli("ill", p[x], observed=np.arange(n) % 2)
        pmd.LaplaceMechanism(2.0).potential("s", x.sum(), released=n // 2)
    return model


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize(("write", "n_cells"), [(numbers, 3), (outcomes, 4)])
def test_parameters_move_with_the_tables_of_all_kinds_of_records(write, n_cells):
    most = n_cells * RECORDS_PER_CELL
    assert table_if_cheaper(write(most), None, ()) is None
    table = table_if_cheaper(write(most + 1), None, ())
    steps = pmd.assign_steps(model=table.model, progressbar=False)
    [together] = [step for step in steps if isinstance(step, pmd.InterweaveStep)]
    assert table.counts[0].name in together.describe()


@pytest.mark.usefixtures("in_python")
def test_parameters_of_outcomes_are_no_records():
    with pm.Model() as model:
        p = pm.Beta("p", 1, 1, shape=2)
        group = pm.Bernoulli("group", 0.4, shape=900)
        x = pm.Bernoulli("x", p[group], shape=900)
        pmd.RandomizedResponse(0.8, categories=2).observe("answer", x, released=np.arange(900) % 2)
        pmd.LaplaceMechanism(2.0).potential("s", group.sum(), released=300)
    assert [rv.name for rv in pmd.tabulate(model).free_RVs] == ["p", "group_count"]
    idata = pmd.sample(5, tune=5, chains=1, model=model, random_seed=1, progressbar=False)
    assert set(idata.posterior) == {"p", "group_count"}


def test_records_are_marginalised_if_few_terms_are_added_up_for_each():
    def answered(n, categories):
        with pm.Model() as model:
            p = pm.Dirichlet("p", np.ones(categories))
            x = pm.Categorical("x", p=p, shape=n)
            z = np.arange(n)
            mechanism = pmd.RandomizedResponse(0.7, categories=categories)
            mechanism.observe("answer", x, released=z % categories)
            pm.Potential("seen", pm.logp(pm.Normal.dist(x, 1.0), z.astype(float)))
        return model

    assert table_if_cheaper(answered(400, CELLS_PER_RECORD + 1), None, ()) is None
    table = table_if_cheaper(answered(400, CELLS_PER_RECORD), None, ())
    assert (table.n_cells, table.counts) == (400 * CELLS_PER_RECORD, [])


def test_records_without_parameters_are_all_there_is_to_sample():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.3, shape=1_000)
        answers = np.arange(1_000) % 2
        pmd.RandomizedResponse(0.7, categories=2).observe("answer", x, released=answers)
    assert pmd.tabulate(model).free_RVs == []
    assert table_if_cheaper(model, None, ()) is None


def two_groups(*numbers):
    with pm.Model() as model:
        p = pm.Dirichlet("p", np.ones(3))
        for k, n in enumerate(numbers):
            x = pm.Categorical(f"x{k}", p=p, shape=n)
            table = pmd.statistics.counts(x, 3)
            pmd.LaplaceMechanism(2.0).potential(f"s{k}", table, released=np.full(3, n // 3))
    return model


@pytest.mark.usefixtures("in_python")
def test_each_group_of_people_has_a_table_if_that_is_cheaper():
    assert sorted(rv.name for rv in pmd.tabulate(two_groups(900, 1_200)).free_RVs) == [
        "p", "x0_counts", "x1_counts",
    ]  # fmt: skip
    tables = tables_if_cheaper(two_groups(900, 20, 1_200), None, ())
    assert [(table.names, table.n) for table in tables] == [("'x0'", 900), ("'x2'", 1_200)]
    _, _, *counts = tables[-1].model.free_RVs
    assert [rv.name for rv in tables[-1].model.free_RVs] == ["p", "x1", "x0_counts", "x2_counts"]
    assert [rv.tag.people for rv in counts] == ["900 records of 'x0'", "1,200 records of 'x2'"]
    model = two_groups(900, 20)
    for records in (None, [model["x0"], model["x1"]]):
        idata = pmd.sample(
            5, tune=5, chains=1, model=model, records=records, random_seed=1, progressbar=False
        )
        assert set(idata.posterior) == {"p", "x0_counts"}
        budgets = ReleaseBudgets.from_json(idata.attrs[ATTRIBUTE]).budgets
        assert set(budgets) == {"s0", "s1"}


def test_records_that_are_asked_for_are_sampled():
    assert table_if_cheaper(table_model(10_000), None, ["p"]) is not None
    assert table_if_cheaper(table_model(10_000), None, ["record"]) is None


def test_what_cannot_be_tabulated_is_sampled_by_record():
    with pm.Model() as model:
        x = pm.Bernoulli("x", 0.5, shape=1_000)
        pm.Potential("privacy", -1.0 * x.sum() * x[3])
    assert table_if_cheaper(model, None, ()) is None
    with pm.Model() as counted:
        # Numbers that a mechanism sees one by one are counts, which results keep.
        x = pm.Binomial("x", 2, 0.5, shape=2_000)
        pmd.DiscreteLaplaceMechanism(1.0).potential("privacy", x, released=np.arange(2_000) % 2)
    assert table_if_cheaper(counted, None, ()) is None


@pytest.mark.parametrize("place", ["find_records", "write_in_turn", "compare"])
def test_an_error_of_programming_is_no_reason(place, monkeypatch):
    def fails(*arguments):
        raise AttributeError("'tuple' object has no attribute 'name_for'")

    monkeypatch.setattr(choice, place, fails)
    with pytest.raises(AttributeError, match="name_for") as raised:
        table_if_cheaper(table_model(1_000), None, ())
    [note] = raised.value.__notes__
    assert "please report the model. pmd.sample(tabulate=False) samples the records" in note


def test_deterministics_with_dims_leave_the_table(passed_on):
    model = table_model(MANY)
    with model:
        pm.Deterministic("odds", model["p"] / (1 - model["p"]), dims="cell")
    sampling.sample(model=model, progressbar=False)
    assert [rv.name for rv in passed_on["model"].free_RVs] == ["p", "record_counts"]
    assert passed_on["model"].named_vars_to_dims["odds"] == ("cell",)


@pytest.fixture
def passed_on(monkeypatch, uncompiled):
    """What `pmd.sample` would have PyMC do."""
    options = {}
    monkeypatch.setattr(
        "pymc_dapper.sampling.pm.sample", lambda draws, **given: options.update(given, draws=draws)
    )
    return options


def steps_of(passed_on):
    """The steps that PyMC would take; those in one GibbsStep, each by itself."""
    return getattr(passed_on["step"], "methods", passed_on["step"])


def test_sample_uses_the_table_and_says_so(passed_on, caplog):
    with caplog.at_level(logging.INFO, logger="pymc.dapper"):
        sampling.sample(model=table_model(MANY), progressbar=False)
    assert "'record': sampled as a table of 4 cells by pmd.tabulate" in caplog.text
    assert [rv.name for rv in passed_on["model"].free_RVs] == ["p", "record_counts"]
    [step] = steps_of(passed_on)
    assert "record_counts  (4,)  Multinomial, of 330,000,000 records of 'record'" in step.describe()


def test_tables_that_are_there_are_sampled_with_the_new_one(passed_on):
    model = table_model(1_000)
    with model:
        sizes = pm.Multinomial("sizes", 60, [0.2, 0.8])
        pmd.LaplaceMechanism(2.0).potential("of_sizes", sizes, released=[20.0, 40.0])
    sampling.sample(model=model, progressbar=False)
    [step] = steps_of(passed_on)
    assert {x.name for x in step.vars} == {"p_simplex__", "record_counts", "sizes"}


def two_that_nothing_links(n):
    with pm.Model() as model:
        old = pm.Bernoulli("old", pm.Beta("p", 1, 1), shape=n)
        visits = pm.Poisson("visits", pm.Gamma("rate", 2, 1), shape=n)
        pmd.LaplaceMechanism(2.0).potential("of_old", old.sum(), released=0.4 * n)
        pmd.LaplaceMechanism(2.0).potential("of_visits", visits.sum(), released=3.0 * n)
    return model


def test_what_a_table_leaves_is_sampled_by_record(passed_on, caplog):
    sampling.sample(model=two_that_nothing_links(1_000), progressbar=False)
    names = [rv.name for rv in passed_on["model"].free_RVs]
    assert sorted(names) == ["old_count", "p", "rate", "visits"]
    steps = {type(step).__name__: sorted(x.name for x in step.vars) for step in steps_of(passed_on)}
    assert steps["DapperStep"] == ["visits"]
    assert "old_count" in steps["CountStep"]
    assert "isn't among the record variables" not in caplog.text


def test_a_variable_that_is_not_passed_is_logged(passed_on, caplog):
    model = two_that_nothing_links(1_000)
    sampling.sample(model=model, records=[model["old"]], progressbar=False)
    assert "'visits' has as many entries as there are records, 1,000" in caplog.text
    assert "records=[visits], tabulate=False" in caplog.text


@pytest.mark.parametrize(
    "options",
    [
        {"tabulate": False},
        {"keep_records": True},
        {"dapper": {"track_records": True}},
        {"var_names": ["record"]},
        {"initvals": {"record": np.zeros(1_000, dtype=int)}},
    ],
    ids=lambda options: next(iter(options)),
)
def test_records_can_be_had(options, monkeypatch):
    class ReadByRecord(Exception):
        """Records are looked for."""

    def find_latent(*arguments):
        raise ReadByRecord

    monkeypatch.setattr(sampling, "find_latent", find_latent)
    with pytest.raises(ReadByRecord):
        sampling.sample(model=table_model(1_000), progressbar=False, **options)


def test_parameters_alone_are_sampled_where_records_are_marginalised(passed_on):
    with pm.Model() as model:
        b = pm.Normal("b")
        x = pm.Bernoulli("x", logit_p=b, shape=MANY // 10**5)
        answers = np.arange(MANY // 10**5) % 2
        pmd.RandomizedResponse(0.7, categories=2).observe("answer", x, released=answers)
    sampling.sample(model=model, progressbar=False)
    assert [rv.name for rv in passed_on["model"].free_RVs] == ["b"]
    assert len(steps_of(passed_on)) == 1


def item_responses(n=200, *, with_sum=False):
    rng = np.random.default_rng(0)
    with pm.Model() as model:
        spread = pm.HalfNormal("spread", 1)
        ability = pm.Normal("ability", 0, spread, shape=n)
        difficulty = pm.Normal("difficulty", 0, 1, shape=3)
        x = pm.Bernoulli("x", logit_p=ability[:, None] - difficulty, shape=(n, 3))
        mechanism = pmd.RandomizedResponse(0.8, categories=2)
        mechanism.observe("answer", x, released=rng.integers(0, 2, (n, 3)))
        if with_sum:
            pmd.GaussianMechanism(1.0).potential("sum", ability.sum(), released=0.0)
    return model


@pytest.mark.usefixtures("uncompiled")
def test_unknown_numbers_of_each_person_are_left_out_unless_they_are_named(monkeypatch, caplog):
    model, kept = item_responses(), []

    def stop(*_, var_names, **options):
        kept.append(var_names)
        kept.append([rv.name for rv in options["model"].free_RVs])

    monkeypatch.setattr(sampling.pm, "sample", stop)
    with caplog.at_level("INFO", logger="pymc.dapper"):
        pmd.sample(model)
        pmd.sample(model, var_names=["ability"])
    free = ["spread", "ability", "difficulty"]
    assert kept == [["spread", "difficulty"], free, ["ability"], free]
    assert "Left out of the result: 'ability'. var_names= keeps what it names" in caplog.text
    assert "as many entries as there are records" not in caplog.text


def test_people_whom_a_mechanism_sees_keep_their_answers():
    """Their abilities are records: each is moved with its answers."""
    assert table_if_cheaper(item_responses(), None, ()).of_people == ["ability"]
    assert table_if_cheaper(item_responses(with_sum=True), None, ()) is None
