"""Affine group moves of records: the volume element, and which records."""

from dataclasses import replace

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import stats

from pymc_dapper import ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.interweaving.reading.affine import (
    MOST_COLUMNS,
    affine_records,
    noise_moves_affinely,
    read_affine,
)
from pymc_dapper.interweaving.reading.self_check import check_noise
from tests.interweaving.linked import read, values_of

N = 12
FACTOR = np.array([[1.3, 0.0, 0.0], [0.4, 0.7, 0.0], [-0.6, 0.2, 1.1]])


def affine_of(model, parameters, records, of_noise=False):
    values, point = values_of(model, *records), model.initial_point()
    reading = read(model, parameters, records)
    return read_affine(reading, affine_records(values, point), point, of_noise)


def affine_coordinates(columns):
    """The mean and the entries of the Cholesky factor, logarithms of those of its diagonal."""
    factor = np.linalg.cholesky(np.cov(columns.T, bias=True))
    np.fill_diagonal(factor, np.log(np.diag(factor)))
    return np.concatenate([columns.mean(axis=0), factor[np.tril_indices(len(factor))]])


def normal_rows():
    """Normal records: one variable with one number of each, one with two, all correlated."""
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, 2)
        a = pm.Normal("a", mu, FACTOR[0, 0], shape=N)
        e = (a - mu) / FACTOR[0, 0]
        b = mu + FACTOR[1, 0] * e
        x = pm.Normal("x", pt.stack([b, b], axis=1), FACTOR[1, 1], shape=(N, 2))
        pm.Normal("release", a.sum() + x.sum(), 1.0, observed=0.0)
    return model


def without_volume(reading):
    """Broken: an affine map of all records taken to keep their volume."""
    new = reading.proposed[-1]
    return replace(reading, log_density=reading.log_density - volume(new, [N - 1] * 3))


def of_equal_columns(reading):
    """Broken: the volume element of scaling, as if shearing had none."""
    new = reading.proposed[-1]
    wrong = volume(new, [N - 1] * 3) - volume(new, [N - 1, N - 2, N - 3])
    return replace(reading, log_density=reading.log_density + wrong)


def volume(vector, powers):
    # Means, then the rows of the factor.
    return sum(power * vector[k] for power, k in zip(powers, (3, 5, 8), strict=True))


def densities(reading, vectors, mu=0.3):
    """The log-density of affine moves, with the standardised values of some records held fixed."""
    records = [np.random.default_rng(1).normal(size=x.type.shape) for x in reading.records]
    inputs = [*reading.parameters, *reading.records, *reading.proposed]
    evaluate = compile_in_python(reading.model, inputs, [reading.log_density])
    at = [np.array(mu), *records, np.array(mu)]
    return np.array([float(evaluate(*at, vector)[0]) for vector in vectors])


RECORDS_FACTOR = np.array([[1.3, 0, 0], [0.4, 0.7, 0], [0.4, 0, 0.7]])


def known_densities(vectors, mu=0.3, of_noise=False):
    """Of mean and Cholesky factor of normal rows, by Bartlett's decomposition."""
    location, factor = (0.0, np.eye(3)) if of_noise else (mu, RECORDS_FACTOR)
    found = []
    for m, rest in ((vector[:3], vector[3:]) for vector in vectors):
        present = np.array([[np.exp(rest[0]), 0, 0], [rest[1], np.exp(rest[2]), 0], rest[3:]])
        present[2, 2] = np.exp(rest[5])
        standard = np.linalg.solve(factor, present) * np.sqrt(N)
        logp = stats.norm.logpdf(np.linalg.solve(factor, m - location) * np.sqrt(N)).sum()
        for j in range(3):
            # Squares on the diagonal are chi-squared, with logs as coordinates.
            logp += stats.chi2.logpdf(standard[j, j] ** 2, N - 1 - j) + 2 * np.log(standard[j, j])
            logp += stats.norm.logpdf(standard[j, :j]).sum()
        released = N * (mu + RECORDS_FACTOR @ m if of_noise else m).sum()
        found.append(logp + stats.norm.logpdf(0.0, released, 1.0))
    return np.array(found)


def some_vectors():
    rng = np.random.default_rng(2)
    return rng.normal(0.0, 0.3, (20, 9))


def disagreement(reading, of_noise):
    known = known_densities(some_vectors(), of_noise=of_noise)
    return np.ptp(densities(reading, some_vectors()) - known)


@pytest.mark.parametrize("of_noise", [False, True])
def test_the_affine_move_of_normal_records_has_the_law_that_is_known(of_noise):
    """Bartlett's decomposition; the density of the fixed part doesn't change."""
    reading = affine_of(normal_rows(), ["mu"], ["a", "x"], of_noise)
    assert disagreement(reading, of_noise) < 1e-9


@pytest.mark.parametrize("of_noise", [False, True])
@pytest.mark.parametrize("fault", [without_volume, of_equal_columns])
def test_a_wrong_volume_element_is_detected(fault, of_noise):
    reading = fault(affine_of(normal_rows(), ["mu"], ["a", "x"], of_noise))
    assert disagreement(reading, of_noise) > 0.1


def normal_families():
    """All families whose noise is standard normal, and records that no parameter moves."""
    with pm.Model() as model:
        scale = pm.Gamma("scale", 3, 2)
        still = pm.Normal("still", 0.5, 1.5, shape=N)
        wage = pm.LogNormal("wage", 0.2 * still, scale, shape=N)
        pair = pm.MvNormal("pair", np.ones(2), chol=scale * FACTOR[:2, :2], shape=(N, 2))
        sums = pt.stack([still.sum(), wage.sum(), pair.prod(axis=1).sum()])
        pm.Laplace("release", sums, 3.0, observed=np.ones(3))
    return model


def test_affine_moves_of_records_and_of_noise_lead_to_the_same_states_with_the_same_densities():
    """Parameters held fixed, each way is an affine function of the other: of constant volume."""
    model = normal_families()
    names, scale = ("still", "wage", "pair"), np.array(0.4)
    by_noise, by_records = (affine_of(model, ["scale"], names, way) for way in (True, False))
    rng = np.random.default_rng(4)
    records = [rng.normal(size=x.type.shape) for x in by_noise.records]
    outputs = [*by_noise.moved_records, by_noise.log_density]
    inputs = [*by_noise.parameters, *by_noise.records, *by_noise.proposed]
    move = compile_in_python(model, inputs, outputs)
    inputs = [*by_records.parameters, *by_records.records, *by_records.proposed]
    density = compile_in_python(model, inputs, [by_records.log_density])
    found = []
    for vector in rng.normal(0, 0.3, (10, 14)):
        a, b, c, logp = move(scale, *records, scale, vector)
        there = affine_coordinates(np.column_stack([a, b, c]))
        [other] = density(scale, *records, scale, there)
        found.append(float(logp - other))
    assert np.ptp(found) < 1e-8


def test_normal_noise_that_moves_as_a_whole_moves_affinely():
    model = normal_families()
    names = ("still", "wage", "pair")
    reading, values = read(model, ["scale"], names), values_of(model, *names)
    assert noise_moves_affinely(reading, values)
    assert not noise_moves_affinely(reading, values[:2])
    reading = read(mixed_rows(), ["theta"], MIXED)
    assert not noise_moves_affinely(reading, values_of(reading.model, *MIXED))


def mixed_rows():
    with pm.Model() as model:
        theta = pm.Gamma("theta", 3, 2)
        wage = pm.LogNormal("wage", 0, theta, shape=N)
        share = pm.Beta("share", theta, 2, shape=N)
        pair = pm.Normal("pair", wage[:, None], theta, shape=(N, 2))
        group = pm.Normal("group", 0, theta, shape=3)
        kind = pm.Poisson("kind", theta, shape=N)
        sums = pt.stack([wage.sum(), (share * pair[:, 0]).sum(), group.sum(), kind.sum()])
        pm.Laplace("release", sums, 1.0, observed=np.ones(4))
    return model


MIXED = ("wage", "share", "pair", "group", "kind")


def test_records_of_any_law_come_back_and_have_the_density_of_the_model():
    model = mixed_rows()
    reading = affine_of(model, ["theta"], MIXED)
    assert reading.names(reading.records) == ["wage", "share", "pair"]
    checked = check_noise(reading, model.initial_point())
    assert np.isfinite(checked.log_density)
    wrong = replace(reading, log_density=reading.log_density + reading.proposed[-1][0])
    with pytest.raises(ReadingError, match="can't read the model exactly"):
        check_noise(wrong, model.initial_point())


def test_the_moved_vector_is_the_mean_and_the_cholesky_factor():
    model = normal_rows()
    reading = affine_of(model, ["mu"], ["a", "x"])
    a, x = np.random.default_rng(1).normal(size=(2, N, 2)) * 3 + 1
    [found] = compile_in_python(model, reading.records, [reading.affine])(a[:, 0], x)
    columns = np.column_stack([a[:, 0], x])
    np.testing.assert_allclose(found, affine_coordinates(columns))


def test_records_that_repeat_each_other_do_not_move_affinely():
    reading = affine_of(normal_rows(), ["mu"], ["a", "x"])
    a = np.arange(float(N))
    records = [a, np.column_stack([2 * a, -a])]
    noise = compile_in_python(reading.model, reading.records, [reading.noise[0]])
    assert np.isnan(noise(*records)[0]).any()
    # No move leads there.
    flat = np.zeros(9)
    flat[[5, 4]] = -20, 1.0
    assert densities(reading, [flat])[0] == -np.inf


@pytest.mark.parametrize(
    ("shapes", "chosen"),
    [
        ([(8,), (8, 2), (3,)], [0, 1]),  # rows of the most records
        ([(7,), (7, 2), (3,)], []),  # too few rows for their columns
        ([(99, MOST_COLUMNS)], [0]),
        ([(99, MOST_COLUMNS + 1)], []),
        ([(), (99, 2, 2)], []),
    ],
)
def test_real_records_in_as_many_rows_move_affinely(shapes, chosen):
    with pm.Model() as model:
        names = [pm.Normal(f"x{k}", shape=shape).name for k, shape in enumerate(shapes)]
    values = values_of(model, *names)
    assert affine_records(values, model.initial_point()) == [values[k] for k in chosen]
