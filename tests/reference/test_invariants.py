"""Release under invariants, against enumeration, closed forms and quadrature."""

import json
import math
import runpy
from pathlib import Path

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats
from scipy.integrate import quad

from pymc_dapper.reference import invariants as module
from pymc_dapper.reference._linear_invariants import Elimination, eliminate
from pymc_dapper.reference.invariants import (
    log_likelihood,
    privacy_loss,
    release_law,
    sample_under_invariants,
)
from tests.monte_carlo import smallest_ess, z_scores

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = EXAMPLES / "data" / "sex_by_age_invariants.json"

TABLE = [[3, 1], [0, 2]]
NOISE = stats.dlaplace(0.5)
MARGINS = [[1, 1, 1, 1], [1, 1, 0, 0]]  # the total and the first row
NON_NEGATIVE = (np.eye(4), np.zeros(4))


# Which cells are free


def test_redundant_equalities_don_t_count_and_the_solution_keeps_all():
    rows = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]]
    rng = np.random.default_rng(1)
    for whole in (True, False):
        found = eliminate(rows, 4, whole=whole)
        assert found.solved.size == 2
        np.testing.assert_array_equal(np.sort(np.append(found.free, found.solved)), np.arange(4))
        e = np.rint(rng.normal(0, 5, (100, 4)))
        free = e[:, found.free].copy()
        assert found.complete(e).all()
        np.testing.assert_array_equal(e[:, found.free], free)
        np.testing.assert_allclose(e @ np.transpose(rows), 0, atol=1e-12)


def test_elimination_prefers_cells_that_whole_numbers_can_be_solved_for():
    assert eliminate([[2, 3, 1]], 3, whole=True).solved == [2]
    unimodular = eliminate([[2, 1, 0, 3], [1, 1, 5, 0]], 4, whole=True)
    block = unimodular.matrix[:, unimodular.solved]
    assert abs(np.linalg.det(block)) == pytest.approx(1)


def test_proposals_without_a_solution_in_whole_numbers_are_found():
    found = eliminate([[2, 1, 1]], 3, whole=True, solve_for=[0])
    e = np.array([[9.0, 1, 1], [9, 1, 2], [9, 0, 0], [9, -3, 1]])
    np.testing.assert_array_equal(found.complete(e), [True, False, True, True])
    np.testing.assert_array_equal(e[[0, 2, 3], 0], [-1, 0, 1])


# The sampler


def state_z_scores(draws, law):
    """Standard errors between how often each likely state was visited and its probability."""
    flat = draws.reshape(*draws.shape[:2], -1)
    z = []
    for state, probability in zip(law.states, law.probabilities, strict=True):
        if probability > 0.01:
            visits = np.all(flat == state, axis=-1).astype(float)
            mcse = array_stats.mcse(visits, chain_axis=0, draw_axis=1, method="mean")
            z.append(float((visits.mean() - probability) / mcse) if mcse else math.inf)
    assert len(z) > 5
    return np.abs(z)


def sample_table(**options):
    return sample_under_invariants(
        TABLE,
        NOISE,
        equalities=MARGINS,
        inequalities=NON_NEGATIVE,
        proposal=stats.dlaplace(0.9),
        draws=10_000,
        tune=500,
        random_seed=3,
        progressbar=False,
        **options,
    )


@pytest.fixture(scope="module")
def table_law():
    return release_law(TABLE, NOISE, equalities=MARGINS, inequalities=NON_NEGATIVE, radius=8)


@pytest.fixture(scope="module")
def table_draws():
    return sample_table()


def test_enumeration_has_every_table_with_the_margins(table_law):
    # The first row is a split of 4, the second one of 2.
    expected = [[a, 4 - a, c, 2 - c] for a in range(5) for c in range(3)]
    assert sorted(map(tuple, table_law.states)) == sorted(map(tuple, expected))
    weights = np.exp(-0.5 * np.abs(table_law.states - np.ravel(TABLE)).sum(axis=1))
    np.testing.assert_allclose(table_law.probabilities, weights / weights.sum(), rtol=1e-12)


def test_draws_have_the_enumerated_law(table_draws, table_law):
    assert table_draws.draws.shape == (4, 10_000, 2, 2)
    assert table_draws.draws.dtype == np.int64
    assert state_z_scores(table_draws.draws, table_law).max() < 4


@pytest.mark.parametrize(
    "options", [{"solve_for": [1, 2]}, {"solve_for": [0, 3]}, {"thin": 3, "chains": 2}]
)
def test_neither_the_solved_cells_nor_thinning_change_the_law(options, table_law):
    assert state_z_scores(sample_table(**options).draws, table_law).max() < 4


def test_the_chain_goes_on_across_blocks_of_proposals(table_law, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK", 97 * 4)
    assert state_z_scores(sample_table().draws, table_law).max() < 4


def test_without_the_proposals_density_the_law_is_another(table_law, monkeypatch):
    monkeypatch.setattr(module._Problem, "log_weights", lambda self, _, e: self.log_density(e))
    assert state_z_scores(sample_table().draws, table_law).max() > 4


def test_a_wrong_solution_never_passes_the_exact_check(table_law, monkeypatch):
    right = eliminate(MARGINS, 4, whole=True)
    wrong = Elimination(right.matrix, right.free, right.solved, -right.solution, whole=True)
    monkeypatch.setattr(module, "eliminate", lambda *_, **__: wrong)
    drawn = sample_table()
    assert drawn.solvable_rate < 0.5
    assert state_z_scores(drawn.draws, table_law).max() > 4


def test_acceptance_is_what_the_enumerated_chain_has(table_draws, table_law):
    # The stationary rate: sum over pairs of pi(s) q(s') min(1, w(s') / w(s)), w = pi / q.
    free = eliminate(MARGINS, 4, whole=True).free
    moved = (table_law.states - np.ravel(TABLE))[:, free]
    q, pi = stats.dlaplace(0.9).pmf(moved).prod(axis=1), table_law.probabilities
    rate = np.minimum(pi[:, None] * q, pi * q[:, None]).sum()
    spread = table_draws.acceptance_rate.std(ddof=1) / 2
    binomial = math.sqrt(rate * (1 - rate) / 40_000)
    assert abs(table_draws.acceptance_rate.mean() - rate) < 4 * max(spread, 2 * binomial)
    assert abs(table_draws.feasible_rate - q.sum()) < 4 * math.sqrt(0.25 / 42_000)


def test_a_table_whose_solved_cell_must_be_even_is_sampled_too():
    # 2 a + b + c is held: solving for a, every other proposal has no solution.
    options = {"equalities": [[2, 1, 1]], "inequalities": (np.eye(3), np.zeros(3))}
    law = release_law([2, 1, 3], NOISE, radius=10, **options)
    drawn = sample_under_invariants(
        [2, 1, 3], NOISE, solve_for=[0], draws=10_000, random_seed=5, progressbar=False, **options
    )
    odd = np.array([NOISE.pmf(np.arange(parity, 200, 2)).sum() for parity in (1,)])[0] * 2
    solvable = odd**2 + (1 - odd) ** 2
    assert abs(drawn.solvable_rate - solvable) < 4 * math.sqrt(0.25 / (4 * 11_000))
    assert state_z_scores(drawn.draws, law).max() < 4


class FixedSum:
    """Laplace noise of scale 2 on two cells of fixed sum: Laplace of scale 1, perhaps cut off."""

    def __init__(self, centre, low=-np.inf, high=np.inf, scale=1.0):
        self._law = stats.laplace(centre, scale)
        self._low, self._high = low, high
        self._mass = self._law.cdf(high) - self._law.cdf(low)

    def _moment(self, power):
        low, high = max(self._low, -60), min(self._high, 60)
        integrand = quad(
            lambda x: x**power * self._law.pdf(x), low, high, points=[self._law.mean()], limit=200
        )
        return integrand[0] / self._mass

    @property
    def mean(self):
        return self._moment(1)

    @property
    def sd(self):
        return math.sqrt(self._moment(2) - self._moment(1) ** 2)

    def quantile(self, q):
        return float(self._law.ppf(self._law.cdf(self._low) + q * self._mass))


@pytest.mark.parametrize("cut", [False, True])
def test_continuous_noise_on_two_bins_of_fixed_sum_is_laplace_of_half_the_scale(cut):
    drawn = sample_under_invariants(
        [1.5, 2.0],
        stats.laplace(scale=2),
        equalities=[[1, 1]],
        inequalities=(np.eye(2), np.zeros(2)) if cut else None,
        proposal=stats.laplace(scale=1.5),
        draws=10_000,
        random_seed=6,
        progressbar=False,
    ).draws
    np.testing.assert_allclose(drawn.sum(axis=-1), 3.5, rtol=1e-12)
    edges = {"low": 0.0, "high": 3.5} if cut else {}
    first = drawn[..., 0]
    assert smallest_ess(first) > 1000
    assert max(map(abs, z_scores(first, FixedSum(1.5, **edges)).values())) < 4
    assert max(map(abs, z_scores(first, FixedSum(1.5, scale=1.1, **edges)).values())) > 4


def test_noise_may_differ_between_cells():
    scales = np.array([1.0, 3.0, 2.0])
    drawn = sample_under_invariants(
        [5.0, 5.0, 5.0],
        stats.norm(0, scales),
        equalities=[[1, 1, 1]],
        draws=10_000,
        random_seed=7,
        progressbar=False,
    ).draws
    # A normal law given its sum: covariance S - S 1 1' S / 1' S 1.
    variances = scales**2 - scales**4 / np.sum(scales**2)
    for k in range(3):
        law = stats.norm(5.0, math.sqrt(variances[k]))

        class Exact:
            mean, sd, quantile = law.mean(), law.std(), staticmethod(law.ppf)

        assert max(map(abs, z_scores(drawn[..., k], Exact).values())) < 4


def test_a_table_that_the_invariants_determine_is_released_as_it_is():
    drawn = sample_under_invariants(
        [4, 7], NOISE, equalities=np.eye(2), draws=10, tune=0, progressbar=False
    )
    assert np.all(drawn.draws == [4, 7])


@pytest.fixture(scope="module")
def sex_by_age():
    data = json.loads(DATA.read_text(encoding="utf-8"))
    tables = {
        name: np.array([data[name]["female"], data[name]["male"]])
        for name in ("confidential", "released")
    }
    female, adult = np.zeros((2, 23)), np.zeros((2, 23))
    female[0], adult[:, data["below_voting_age"] :] = 1, 1
    rows = np.stack([np.ones((2, 23)), female, adult]).reshape(3, 46)
    return tables, rows, data["totals"]


def test_the_published_table_and_its_release_share_the_totals(sex_by_age):
    tables, rows, totals = sex_by_age
    published = [totals[name] for name in ("all", "female", "voting_age")]
    for table in tables.values():
        np.testing.assert_array_equal(rows @ table.ravel(), published)
        assert table.min() >= 0


def test_every_draw_of_the_sex_by_age_table_keeps_what_was_promised(sex_by_age):
    tables, rows, _ = sex_by_age
    drawn = sample_under_invariants(
        tables["confidential"],
        NOISE,
        equalities=rows,
        inequalities=(np.eye(46), np.zeros(46)),
        proposal=stats.dlaplace(0.6),
        draws=20_000,
        chains=2,
        random_seed=8,
        progressbar=False,
    )
    flat = drawn.draws.reshape(-1, 46)
    np.testing.assert_array_equal(
        flat @ rows.T, np.tile(rows @ tables["confidential"].ravel(), (40_000, 1))
    )
    assert flat.min() == 0
    assert drawn.solvable_rate == 1
    assert np.all(drawn.acceptance_rate > 0)
    assert drawn.feasible_rate < 0.2  # most proposals have a negative cell


def test_progress_is_shown_unless_it_is_not_wanted(capsys):
    options = {"draws": 10, "tune": 0, "random_seed": 1}
    sample_under_invariants(TABLE, NOISE, progressbar=False, **options)
    assert capsys.readouterr().out == ""
    sample_under_invariants(TABLE, NOISE, **options)
    assert "Sampling under invariants" in capsys.readouterr().out


def test_same_seed_same_draws_and_arviz_takes_them(table_draws):
    np.testing.assert_array_equal(sample_table().draws, table_draws.draws)
    assert table_draws.to_datatree()["posterior"]["release"].shape == (4, 10_000, 2, 2)


# What remains of privacy


def gamma(loss, k, epsilon):
    """Solve loss = (1 + gamma) k epsilon."""
    return loss / (k * epsilon) - 1


EPSILON = 0.8
BOTH = {"equalities": [[1, 1]]}


def test_without_restriction_nothing_is_gained():
    # A count that one record more or less changes by one.
    loss = privacy_loss([5], [6], stats.dlaplace(EPSILON), radius=80)
    assert gamma(loss, 1, EPSILON) == pytest.approx(0, abs=1e-12)


def test_a_query_that_is_constant_under_the_invariant_tells_nothing():
    # What is held is the query itself: neighbours that share it have one and the same release.
    noise = stats.dlaplace(EPSILON)
    loss = privacy_loss([5], [5], noise, equalities=[[1]])
    assert gamma(loss, 1, EPSILON) == -1
    np.testing.assert_array_equal(release_law([5], noise, equalities=[[1]]).states, [[5]])
    # Without the invariant, neighbours whose counts differ are told apart by up to epsilon.
    assert privacy_loss([5], [6], noise) == pytest.approx(EPSILON)


def test_two_bins_of_fixed_sum():
    # One record replaced by another moves from bin to bin: sensitivity 2, so Laplace(2 / epsilon).
    loss = privacy_loss([5, 3], [4, 4], stats.dlaplace(EPSILON / 2), radius=80, **BOTH)
    assert gamma(loss, 2, EPSILON) == pytest.approx(-1 / 2)  # replacing counts as leave and enter
    assert gamma(loss, 1, EPSILON) == pytest.approx(0, abs=1e-12)  # replacing counts as one
    # And with noise for a sensitivity of 1, it would not be what was promised.
    careless = privacy_loss([5, 3], [4, 4], stats.dlaplace(EPSILON), **BOTH)
    assert gamma(careless, 1, EPSILON) == pytest.approx(1)


def test_two_bins_of_fixed_sum_with_continuous_noise():
    # Given the sum, the first bin is the count + Laplace(1 / epsilon), by the density's quadrature.
    scale = 2 / EPSILON

    def log_density(x, count):
        noise = stats.laplace(scale=scale)
        total, _ = quad(lambda t: noise.pdf(t) * noise.pdf(-t), -np.inf, np.inf)
        return noise.logpdf(x - count) + noise.logpdf(count - x) - math.log(total)

    x = np.linspace(-10, 20, 301)
    np.testing.assert_allclose(
        log_density(x, 5), stats.laplace(5, 1 / EPSILON).logpdf(x), atol=1e-7
    )
    loss = np.abs(log_density(x, 5) - log_density(x, 4)).max()
    assert gamma(loss, 2, EPSILON) == pytest.approx(-1 / 2, abs=1e-9)


@pytest.mark.parametrize("pair", [([5, 3], [4, 4]), ([0, 4], [1, 3]), ([1, 1], [2, 0])])
def test_inequalities_cost_what_the_normalisers_differ_by(pair):
    options = {**BOTH, "inequalities": (np.eye(2), np.zeros(2))}
    one, other = pair
    total = sum(one)
    laws = []
    for count in (one[0], other[0]):  # by hand: first bin from 0 to the total
        weights = np.array([math.exp(-EPSILON * abs(x - count)) for x in range(total + 1)])
        laws.append(weights / weights.sum())
    expected = np.abs(np.log(laws[0] / laws[1])).max()

    loss = privacy_loss(one, other, stats.dlaplace(EPSILON / 2), **options)

    assert loss == pytest.approx(expected)
    assert EPSILON < loss < 2 * EPSILON  # more than without; never more than twice


def test_tables_that_differ_in_an_invariant_are_told_apart():
    assert privacy_loss([5, 3], [5, 4], NOISE, **BOTH) == math.inf


# The analyst's side


@pytest.mark.parametrize("equalities", [None, [[1, 1, 1]], [[1, 1, 1], [1, -1, 0]], [[2, 1, 1]]])
def test_likelihood_is_the_enumerated_law_up_to_a_constant(equalities):
    noise = stats.dlaplace(1.5)
    law = release_law([6, 3, 3], noise, equalities=equalities, radius=25)
    likely = law.probabilities > 1e-6
    constants = [
        log_likelihood(state, [6, 3, 3], noise, equalities=equalities) - math.log(probability)
        for state, probability in zip(
            law.states[likely][::5], law.probabilities[likely][::5], strict=True
        )
    ]
    assert np.ptp(constants) < 1e-9
    # Without equalities there is nothing to condition on.
    assert (abs(constants[0]) < 1e-9) == (equalities is None)


def test_constant_is_the_same_for_every_table():
    tables = np.array([[6, 3, 3], [5, 4, 3], [1, 1, 10], [6, 3, 4]])
    options = {"equalities": [[1, 1, 1]]}
    told = log_likelihood([5, 3, 4], tables, NOISE, **options)
    assert told[3] == -math.inf
    released = [release_law(table, NOISE, radius=25, **options) for table in tables[:3]]
    p = [law.probabilities[np.all(law.states == [5, 3, 4], axis=1)][0] for law in released]
    assert np.ptp(told[:3] - np.log(p)) < 1e-6


def test_continuous_likelihoods_are_products_of_densities():
    noise = stats.norm(scale=1.3)
    told = log_likelihood([1.0, 2, 3], [[1.5, 2, 2.5], [1.0, 2, 4]], noise, equalities=[[1, 1, 1]])
    assert told.tolist() == [pytest.approx(noise.logpdf([-0.5, 0, 0.5]).sum()), -math.inf]


def test_likelihood_under_inequalities_is_refused_for_its_normaliser_depends_on_the_data():
    options = {"inequalities": (np.eye(2), np.zeros(2)), **BOTH}
    with pytest.raises(ValueError, match="depends on the confidential table"):
        log_likelihood([5, 3], [4, 4], NOISE, **options)
    # And it does: where the noise's density is the same, the law's isn't.
    ratios = []
    for table, release in (([4, 4], [5, 3]), ([0, 8], [1, 7])):
        law = release_law(table, NOISE, **options)
        p = law.probabilities[np.all(law.states == release, axis=1)][0]
        ratios.append(p / math.exp(log_likelihood(release, table, NOISE, **BOTH)))
    assert ratios[1] > 1.2 * ratios[0]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"equalities": [[1, 1]]}, ValueError, "a column for each of the 4 cells"),
        ({"equalities": [[0.5, 1, 1, 1]]}, ValueError, "common denominator"),
        ({"equalities": MARGINS, "solve_for": [0]}, ValueError, "rank 2"),
        ({"equalities": MARGINS, "solve_for": [0, 1]}, ValueError, "linearly independent"),
        ({"equalities": MARGINS, "solve_for": [0, 4]}, ValueError, "from 0 to 3"),
        ({"equalities": MARGINS, "solve_for": [0.0, 2.0]}, ValueError, "list of cells"),
        ({"inequalities": np.eye(4)}, ValueError, "must be a pair"),
        ({"inequalities": (np.eye(3), np.zeros(3))}, ValueError, "shapes"),
        ({"inequalities": (np.eye(4), np.ones(4))}, ValueError, "violates inequality 2"),
        ({"proposal": stats.laplace()}, TypeError, "both be continuous"),
        ({"proposal": stats.randint(1, 3)}, ValueError, "density at 0"),
        ({"noise": "laplace"}, TypeError, "noise must be a distribution"),
        ({"confidential": [[0.5, 1], [1, 1]]}, ValueError, "whole numbers"),
        ({"confidential": [[math.nan, 1], [1, 1]]}, ValueError, "finite"),
        ({"draws": 0}, ValueError, "draws must be a whole number of at least 1"),
        ({"tune": -1}, ValueError, "tune must be a whole number of at least 0"),
    ],
)
def test_senseless_problems_are_refused_with_the_reason(options, error, message):
    arguments = {"confidential": TABLE, "noise": NOISE, "progressbar": False, **options}
    with pytest.raises(error, match=message):
        sample_under_invariants(**arguments)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: release_law([1.0], stats.norm()), TypeError, "enumerated"),
        (lambda: release_law(np.ones(9), NOISE), ValueError, "states"),
        (lambda: privacy_loss([1], [1, 2], NOISE), ValueError, r"must have shape \(1,\)"),
        (lambda: privacy_loss([1], [1], stats.norm()), TypeError, "enumerated"),
        (lambda: log_likelihood([1, 2], [1], NOISE), ValueError, "statistic must have"),
    ],
)
def test_what_cannot_be_computed_is_refused_with_the_reason(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.long
def test_the_example_prints_its_table_and_saves_its_figure(monkeypatch, tmp_path, capsys):
    # A script finds its neighbours because its folder is first on the path.
    monkeypatch.syspath_prepend(str(EXAMPLES))
    example = runpy.run_path(str(EXAMPLES / "invariants.py"))
    figure = tmp_path / "figure.png"
    example["main"](draws=500, output=figure)
    assert figure.stat().st_size > 10_000
    printed = capsys.readouterr().out
    for words in ("accepted", "conditioned", "cut off at zero", "gamma"):
        assert words in printed
