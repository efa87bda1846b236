"""Log-densities with one term for each entry of the sums: without compiling anything."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.ops import view_op

import pymc_dapper as pmd
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.reading import read_model
from pymc_dapper.records.reading.entrywise import read_entrywise
from pymc_dapper.records.reading.factors import read_factors
from tests.records.record_models import FORMS, gaussian

X = pt.matrix("x", shape=(5, 3))
SCALE, SHIFT = pt.vector("scale", shape=(3,)), pt.scalar("shift")
TOTAL = X.sum(axis=0)
AT = {SCALE: np.array([1.0, 2.0, 4.0]), SHIFT: np.array(0.5)}
SUM = np.array([3.0, -1.0, 2.0])

ENTRYWISE = {
    "independent noise": -pt.abs(TOTAL - SHIFT).sum(),
    "scales": (-pt.abs(TOTAL - 1.0) / SCALE - pt.log(SCALE)).sum(),
    "some entries by themselves": -(TOTAL**2).sum() / 2 + SHIFT,
    "a total with a name": -pt.abs(view_op(TOTAL) - SHIFT).sum(),  # as of pm.Deterministic
    "a look-up": pt.switch(TOTAL > SHIFT, 0.0, -np.arange(3.0)).sum(),
}


@pytest.mark.parametrize("name", ENTRYWISE)
def test_terms_and_offset_add_up_to_the_log_density(name):
    graph = ENTRYWISE[name]
    factors = read_factors({"privacy": graph}, [X])
    found = read_entrywise(factors)
    options = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    given = list(AT)
    [each] = found.terms
    context = pytensor.function(given, [*each.context, found.offset], **options)(*AT.values())
    *context, offset = context
    term = pytensor.function([each.entry, *each.values], each.term, **options)
    terms = [term(SUM[k], *(values[k] for values in context)) for k in range(3)]
    expected = factors[0].log_density.eval({factors[0].sums[0].total: SUM, **AT}, **options)
    np.testing.assert_allclose(sum(terms) + offset, expected)


def two_tables():
    """Each with its own noise, and one weighed by a factor before it is added to the other."""
    with pm.Model() as model:
        a = pm.Categorical("record_a", np.full(3, 1 / 3), shape=9)
        b = pm.Poisson("record_b", 2.0, shape=9)
        tables = pt.eye(3)[a].sum(axis=0), pt.stack([b, b**2], axis=1).sum(axis=0)
        noise = [-((x - np.arange(n)) ** 2).sum() for x, n in zip(tables, (3, 2), strict=True)]
        pm.Potential("both", 0.5 * noise[0] - (3.0 - noise[1]) / 2 + 1.5)
        gaussian(tables[0])
        pmd.LaplaceMechanism(2.0).potential("again", tables[1], released=np.array([9.0, 20.0]))
    return model


def observed():
    """A total and a table, each with a noise of PyMC's and a scale to be estimated."""
    with pm.Model() as model:
        record = pm.Normal("record", 0, 1, shape=(9, 2))
        scale = pm.HalfNormal("scale", 1)
        pm.Laplace("total", record.sum(), scale, observed=1.0)
        pm.Normal("table", record.sum(axis=0), np.array([1.0, 2.0]), observed=np.zeros(2))
    return model


def stacked():
    """Sums that are put side by side before noise is added."""
    with pm.Model() as model:
        record = pm.Normal("record", 0, 1, shape=9)
        sums = pt.stack([pt.clip(record, -1, 1).sum(), (record**2).sum()])
        pmd.LaplaceMechanism([1.0, 2.0]).potential("sums", sums, released=[0.5, 8.0])
    return model


def read(build):
    model = build()
    records = [x for x in model.free_RVs if x.name.startswith("record")]
    return read_model(model, [model.rvs_to_values[x] for x in records], model.initial_point())


def evaluated(model, outputs, values):
    # The totals are cut off from the records that they are computed from.
    return compile_in_python(model, list(values), outputs)(*values.values())


@pytest.mark.parametrize(
    ("build", "n_sums"),
    [
        (two_tables, 2),
        (observed, 2),
        (stacked, 2),
        (FORMS["einsum"], 1),
        (FORMS["dims_and_shared_data"], 1),
        (FORMS["mechanism_as_vector_observed"], 1),
        (FORMS["cross_product_of_records"], 2),
        (FORMS["one_sum_in_two_factors"], 1),
    ],
)
def test_several_sums_have_terms_of_their_own(build, n_sums):
    reading = read(build)
    density = read_entrywise(reading.additive_factors)
    assert len(density.terms) == len(reading.sums) == n_sums
    rng = np.random.default_rng(0)
    values = {x: np.asarray(reading.model.initial_point()[x.name]) for x in reading.parameters}
    for sum_ in reading.sums:
        values[sum_.total] = rng.integers(1, 9, sum_.total.type.shape).astype(sum_.total.dtype)
    [expected] = evaluated(
        reading.model, [pt.add(*(x.log_density for x in reading.additive_factors))], values
    )
    found = evaluated(reading.model, [density.offset], values)[0]
    for sum_, each in zip(reading.sums, density.terms, strict=True):
        context = evaluated(reading.model, list(each.context), values)
        term = compile_in_python(reading.model, [each.entry, *each.values], [each.term])
        entries = values[sum_.total].astype(float).ravel()
        assert len(entries) == each.n_entries
        found = found + sum(term(*of_entry)[0] for of_entry in zip(entries, *context, strict=True))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize(
    "graph",
    [
        -(TOTAL.sum() ** 2),
        -pt.sqrt((TOTAL**2).sum()),
        -pt.abs(TOTAL[0] - TOTAL[1]),
        TOTAL.max(),
        -(TOTAL * (X**2).sum(axis=0)).sum(),
        -pt.abs(X.sum() - (X**2).sum()),
        -pt.abs(pt.stack([X.sum(), (X**2).sum()]) * X.sum()).sum(),
    ],
    ids=[
        *("square of a sum", "norm", "difference", "largest", "product of sums", "of two sums"),
        "side by side",
    ],
)
def test_what_combines_entries_is_not(graph):
    assert read_entrywise(read_factors({"privacy": graph}, [X])) is None


def test_a_margin_of_a_sum_that_is_seen_by_itself_too_is_no_sum_of_terms():
    with pm.Model() as model:
        record = pm.Categorical("record", np.ones(6) / 6, shape=20)
        table = pt.eye(6)[record].sum(axis=0)
        pm.Normal("cells", table, 2.0, observed=np.ones(6))
        pm.Normal("rows", table.reshape((2, 3)).sum(axis=1), 2.0, observed=np.ones(2))
    reading = read_model(model, [model.rvs_to_values[record]], model.initial_point())
    assert read_entrywise(reading.additive_factors) is None


@pytest.mark.parametrize("scale", [2.0, -2.0])
def test_terms_have_the_checks_of_what_they_depend_on(scale):
    with pm.Model() as model:
        raw = pm.Normal("raw")
        record = pm.Normal("record", 0, 1, shape=(9, 2))
        noise = pm.Normal.dist(np.array([1.0, 2.0]), raw, shape=2)
        pm.Potential("table", pm.logp(noise, record.sum(axis=0)))
    reading = read_model(model, [model.rvs_to_values[record]], model.initial_point())
    density = read_entrywise(reading.additive_factors)
    [sum_], [each] = reading.sums, density.terms
    values = {reading.parameters[0]: np.array(scale), sum_.total: np.array([3.0, -1.0])}
    offset, *context = evaluated(model, [density.offset, *each.context], values)
    term = compile_in_python(model, [each.entry, *each.values], [each.term])
    columns = zip(values[sum_.total], *context, strict=True)
    found = offset + sum(term(*of_entry)[0] for of_entry in columns)
    [expected] = evaluated(model, [reading.factors[0].log_density], values)
    np.testing.assert_allclose(found, expected)
    assert np.isfinite(found) == (scale > 0)


def test_terms_without_an_entry_of_the_sums_keep_a_constant_check():
    """A parameter is released beside a sum, as the number of records is if it isn't known."""
    with pm.Model() as model:
        mu = pm.Normal("mu")
        record = pm.Normal("record", mu, 1, shape=9)
        seen = pt.stack([mu, record.sum()])
        noise = pm.Laplace.dist(seen, np.array([2.0, 4.0]))
        pm.Potential("release", pm.logp(noise, pm.Data("released", [1.0, 7.0])))
    reading = read_model(model, [model.rvs_to_values[record]], model.initial_point())
    density = read_entrywise(reading.additive_factors)
    assert density is not None
    [sum_], [mu_] = reading.sums, reading.parameters
    values = {mu_: np.array(0.3), sum_.total: np.array(2.0)}
    values |= {x: shared.get_value() for shared, x in reading.data.items()}
    [each] = density.terms
    offset, *context = evaluated(model, [density.offset, *each.context], values)
    term = compile_in_python(model, [each.entry, *each.values], [each.term])
    [expected] = evaluated(model, [reading.factors[0].log_density], values)
    found = offset + term(values[sum_.total], *(x[0] for x in context))[0]
    np.testing.assert_allclose(found, expected)


def alike(n_tables=4):
    """Tables of the same noise, of which the last has another scale, from data that may be set."""
    rng = np.random.default_rng(1)
    with pm.Model() as model:
        records = [
            pm.Categorical(f"record{k}", np.full(3, 1 / 3), shape=9) for k in range(n_tables)
        ]
        for k, x in enumerate(records):
            other = records[k - 1]
            mechanism = pmd.GaussianMechanism(2.0 if k + 1 < n_tables else 3.0)
            counted = pmd.statistics.cross_counts(x, other, 3, 3)
            mechanism.potential(f"t{k}", counted, released=rng.normal(size=(3, 3)))
    return model


def entry_by_entry(density, sums, reading):
    """Evaluate a density of entries at sums, with the present data."""
    total = 0.0
    for terms, values in zip(density.terms, sums, strict=True):
        context = [np.ravel(x) for x in reading.in_python([*terms.context])(*RECORDS)]
        term = pytensor.function(
            [terms.entry, *terms.values], terms.term, mode="FAST_COMPILE", on_unused_input="ignore"
        )
        entries = values.ravel().astype(float)
        total += sum(term(s, *(x[k] for x in context)) for k, s in enumerate(entries))
    [offset] = reading.in_python([density.offset])(*RECORDS)
    return total + float(offset)


RECORDS = [np.arange(9) * (k + 1) // 2 % 3 for k in range(4)]


def test_factors_that_are_alike_have_their_own_data():
    reading = read(alike)
    density = read_entrywise(reading.additive_factors)
    for _ in range(2):
        sums = reading.in_python([sum_.total for sum_ in reading.sums])(*RECORDS)
        written = reading.in_python([factor.as_written for factor in reading.factors])(*RECORDS)
        np.testing.assert_allclose(entry_by_entry(density, sums, reading), np.sum(written))
        with reading.model:
            pm.set_data({"t1_released": np.full((3, 3), 4.0)})


def test_a_reading_with_data_of_another_factor_is_found_out():
    reading = read(alike)
    density = read_entrywise(reading.additive_factors)
    first, second, *rest = density.terms
    density = replace(density, terms=(first, replace(second, context=first.context), *rest))
    sums = reading.in_python([sum_.total for sum_ in reading.sums])(*RECORDS)
    written = reading.in_python([factor.as_written for factor in reading.factors])(*RECORDS)
    assert abs(entry_by_entry(density, sums, reading) - np.sum(written)) > 0.1
