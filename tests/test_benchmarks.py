"""The benchmarks run, and loops by hand draw from the posterior: a wrong one may well be fast."""

import signal
import subprocess
import time
from functools import partial
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from benchmarks import (
    adult_pairs,
    against,
    by_hand,
    census,
    class_modes,
    drawn_anew,
    first_draws,
    measure,
    measured_records,
    microdata,
    microdata_coverage,
    microdata_peers,
    noisy_measurements,
    page,
    parts,
    people_coverage,
    quantiles,
    run,
    unknown_number,
    untuned,
)
from pymc_dapper.backend.in_python import in_python
from pymc_dapper.graphs.view import view_of
from pymc_dapper.interweaving.reading.conditional_noise import laws_given_measurements
from pymc_dapper.kernels.effective_draws import effective_draws
from tests.broken import edited

pytestmark = pytest.mark.long

# Loops by hand: simulation-based calibration ------------------------------------------------------
#
# Parameters from their prior, records, and a release; then the rank of the parameter among draws of
# the loop is uniform. Each function returns the parameter and the loop's arguments for a release
# whose noise has `times` the scale that the loop is told: 1 for a right loop.


def randomised_response(rng, times):
    p = rng.dirichlet(np.ones(4))
    keep = 0.85
    told = np.full((4, 4), (1 - keep) / 3) + (keep - (1 - keep) / 3) * np.eye(4)
    channel = (1 - 0.25 * (times - 1)) * told + 0.25 * (times - 1) * np.roll(np.eye(4), 1, axis=1)
    record = rng.choice(4, 10, p=p)
    answers = np.array([rng.choice(4, p=channel[k]) for k in record])
    return p[0], (answers, told)


def admissions(rng, times):
    p, sigma = rng.dirichlet(np.ones(4)), 2.0
    lattice = np.arange(-40, 41)
    weights = np.exp(-(lattice**2) / (2 * (times * sigma) ** 2))
    noise = rng.choice(lattice, 4, p=weights / weights.sum())
    return p[0], (rng.multinomial(10, p) + noise.astype(float), sigma, 10)


def regression(rng, times):
    b, x_mean, scale, n = rng.normal(0, 2, 3), np.array([0.9, -1.17]), 0.15, 6
    x = x_mean + rng.normal(size=(n, 2))
    y = b[0] + x @ b[1:] + np.sqrt(2) * rng.normal(size=n)
    (y, u, v) = (np.clip(column / 10, -1, 1) for column in (y, *x.T))
    columns = (y, u * y, v * y, y * y, u, u * u, v, u * v, v * v)
    released = np.array([column.sum() for column in columns])
    return b[1], (n, x_mean, 2.0, 4.0, released + rng.laplace(0, times * scale, 9), scale)


def poisson(rng, times):
    rate, n, scale = rng.gamma(2.0, 1 / 0.5), 5, 2.0
    total = np.minimum(rng.poisson(rate, n), 6).sum()
    return rate, (n, 2.0, 0.5, 6, total + rng.laplace(0, times * scale), scale)


def logistic_regression(rng, times):
    b, scale = rng.normal(0, 2, 2), 1.0
    design = np.column_stack([np.ones(12), np.linspace(-2, 2, 12)])
    y = rng.random(12) < 1 / (1 + np.exp(-design @ b))
    return b[1], (design, 2.0, design.T @ y + rng.laplace(0, times * scale, 2), scale)


LOOPS = [randomised_response, admissions, regression, poisson, logistic_regression]
FALSE_ALARM = 1e-4


def p_value(simulate, times, replicates=600, ranks=10, thin=60, burn_in=300):
    rng = np.random.default_rng(5)
    loop = getattr(by_hand, simulate.__name__)
    column = 1 if simulate in (regression, logistic_regression) else 0
    found = np.zeros(ranks)
    for _ in range(replicates):
        true, arguments = simulate(rng, times)
        sampled = loop(rng, burn_in + (ranks - 1) * thin, *arguments)[burn_in + thin - 1 :: thin]
        found[(sampled[:, column] < true).sum()] += 1
    return stats.chisquare(found).pvalue


@pytest.mark.parametrize("simulate", LOOPS)
def test_a_loop_by_hand_draws_from_the_posterior(simulate):
    assert p_value(simulate, times=1) > FALSE_ALARM


@pytest.mark.parametrize("simulate", LOOPS)
def test_a_loop_that_is_told_a_wrong_scale_is_found_out(simulate):
    assert p_value(simulate, times=4) < FALSE_ALARM


# The programs -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measurements():
    """Some measurements at tiny sizes, and one that is skipped."""
    tiny = {"workload": "admissions", "n": 20}
    chain = {"task": "sampling", "draws": 30, "tune": 30, **tiny}
    jobs = [
        {"task": "sweep", **tiny},
        {"task": "protocol", "draws": 20, **tiny},
        {"way": "pymc_dapper", **chain},
        {"way": "by hand", **chain},
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measure, "SECONDS", 0.01)
        done = [{"job": job, "result": measure.main(job)} for job in jobs]
    absent = {"way": "R's dapper", "script": "admissions", **chain}
    return [*done, {"job": absent, "result": {"skipped": "R isn't installed"}}]


def test_measurements_are_positive_numbers(measurements):
    for entry in measurements[:-1]:
        values = [x for key, x in entry["result"].items() if key != "moves"]
        assert all(np.isfinite(x) and x > 0 for x in values), entry


def test_the_page_shows_what_was_measured_and_what_was_not(measurements):
    first = {
        **{"seconds": 4.0, "cpu_seconds": 3.0, "parts": dict.fromkeys(parts.PARTS, 0.5)},
        **{"compilations": 7, "writing": 0.1, "import_pymc": 1.0, "import_pymc_dapper": 2.0},
    }
    memory = {"bytes_of_records": 160, "copies": {page.SWEEP: 3.0}}
    others = [
        ({"task": "memory", "workload": "admissions", "n": 20}, memory),
        *(
            ({"task": "first_draw", "workload": "admissions", "way": way, "caches": caches}, first)
            for way in ("pymc_dapper", "PyMC's defaults")
            for caches in page.CACHES
        ),
    ]
    text = page.text(
        {
            "python": "3.12",
            "versions": {"pymc": "6"},
            "cores": 2,
            "seconds": 60.0,
            "measurements": measurements + [{"job": j, "result": result} for j, result in others],
        }
    )
    ours = measurements[2]["result"]["ess_per_second"]
    assert f"| {page.number(ours)} |" in text
    assert "Not run, because R isn't installed: R's dapper (example 2" in text
    # R's rate has a note on its source.
    assert f"| {page.number(ours / page.R_EARLIER['admissions'])} |" in text
    assert page.R_NOTE in text
    assert "| example 2, table of counts | 4.0 | 4.0 | 4.0 | 4.0 | 4.0 | 4.0 |" in text
    assert "worked on these draws 75 to 75 percent" in text
    assert (
        "| first draw, empty cache: example 2, table of counts | at most 10 s | 4.0 s | yes |"
        in text
    )
    assert "| first draw, the same model again: example 2, table of counts | at most 1 s |" in text
    assert "| import of `pymc_dapper`, after PyMC's | at most 0.3 s | 2.0 s | **no** |" in text


def test_every_job_is_a_task_with_arguments_that_it_takes():
    for short in (False, True):
        for job in run.jobs(short):
            assert job["task"] in measure.TASKS
            if "way" in job:
                assert job["way"] in page.WAYS
            if job.get("workload"):
                assert job["workload"] in page.TITLES


# Where the time goes ------------------------------------------------------------------------------


def test_time_is_assigned_to_functions_on_the_stack():
    """The outermost is no matter: a check that compiles is compiling."""
    numba, load = "/numba/core/compiler.py", "/numba/core/caching.py"
    check, reading = (
        "/pymc_dapper/records/reading/self_check.py",
        "/pymc_dapper/counts/reading/x.py",
    )
    assert parts.part_of([(numba, "compile"), (check, "check_reading")]) == "numba's compilation"
    loaded = parts.part_of([(load, "load_overload"), (numba, "compile")])
    assert loaded == "compiled code loaded from the cache"
    assert parts.part_of([("/numpy/x.py", "f"), (check, "f")]) == "checks of the reading"
    assert parts.part_of([(reading, "read")]) == "reading the model"
    assert parts.part_of([("/pymc/x.py", "check")]) == "the rest"


def spend(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_all_time_is_put_down_to_something(monkeypatch):
    monkeypatch.setitem(parts.PARTS, parts.IMPORT, lambda frame: frame[1] == "spend")
    before, began = signal.getsignal(signal.SIGPROF), time.process_time()
    with parts.parts() as found:
        spend(0.3)
    total = time.process_time() - began
    assert sum(found.values()) == pytest.approx(total, abs=0.05)
    assert found[parts.IMPORT] == pytest.approx(total, abs=0.1)
    assert signal.getsignal(signal.SIGPROF) == before
    assert signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)


def test_models_that_are_timed_have_titles():
    assert list(first_draws.USERS) == page.USERS
    for build in first_draws.USERS.values():
        assert build().potentials


def test_what_others_left_is_joined_without_mixing_versions_of_a_function(tmp_path):
    """An index names files by numbers: those of another cache hold another version's code."""
    files = {
        "one": {"f-1.py313.nbi": "1", "f-1.py313.1.nbc": "1", "g-2.py313.nbi": "1"},
        "two": {
            **{"f-1.py313.nbi": "2", "f-1.py313.1.nbc": "2", "f-1.py313.2.nbc": "2"},
            **{"h-3.py313.nbi": "2", "h-3.py313.1.nbc": "2"},
        },
        "own": {"own-1.py313.nbi": "own"},
    }
    for workload, names in files.items():
        (tmp_path / "PyMC_s_defaults" / workload / "numba").mkdir(parents=True)
        for name, content in names.items():
            (tmp_path / "PyMC_s_defaults" / workload / "numba" / name).write_text(content)
    job = {"way": "PyMC's defaults", "workload": "own", "caches": "of others"}
    joined = run.cache_of(job, tmp_path)
    found = {file.name: file.read_text() for file in joined.rglob("*") if file.is_file()}
    two = {name: "2" for name in files["two"] if name.startswith("h")}
    assert found == {**files["one"], **two}
    for caches in ("cold", "warm"):
        assert run.cache_of({**job, "caches": caches}, tmp_path).name == "own"


def test_one_task_or_one_way_of_it_is_measured_anew(monkeypatch):
    jobs = [
        {"task": "sweep", "workload": "admissions"},
        {"task": "first_draw", "way": "pymc_dapper"},
        {"task": "first_draw", "way": "PyMC's defaults"},
    ]
    monkeypatch.setattr(run, "jobs", lambda short: iter(jobs))
    monkeypatch.setattr(run, "measure", lambda job, folder: {"seconds": "new"})
    old = [{"job": job, "result": {"seconds": "old"}} for job in (jobs[2], jobs[0])]
    kept = []
    found = run.anew({"cores": 2, "measurements": old}, "first_draw", "pymc_dapper", kept.append)
    assert [entry["job"] for entry in found["measurements"]] == jobs
    assert [entry["result"]["seconds"] for entry in found["measurements"]] == ["old", "new", "old"]
    assert kept == [found]


@pytest.mark.parametrize(
    ("x", "shown"),
    [(1234.5, "1,200"), (0.01234, "0.012"), (1.0, "1.0"), (99.6, "100"), (0.0, "0"), (None, "")],
)
def test_numbers_are_rounded_to_significant_digits(x, shown):
    assert page.number(x) == shown


# Beside another checkout --------------------------------------------------------------------------


def test_the_fastest_of_each_checkout_is_compared(monkeypatch, tmp_path):
    taken = {tmp_path: iter([2.0, 1.0, 3.0]), against.ROOT: iter([1.5, 4.0, 5.0])}
    monkeypatch.setattr(against, "seconds", lambda checkout, job: next(taken[checkout]))
    assert against.ratio(tmp_path, {}, 3) == 1.5


def test_slower_or_unmeasured_rows_stand_out():
    page = against.table({"a": 1.1, "b": 1.3, "c": None}, limit=1.2)
    assert "| a | 1.10 |" in page
    assert "| b | **1.30** |" in page
    assert "| c | **not measured** |" in page


def test_jobs_are_measured_in_seconds():
    for job in against.JOBS.values():
        if job["task"] == "sweep" and job["workload"] == "poisson":
            assert against.seconds(against.ROOT, job) > 0


def test_the_census_is_measured(capsys):
    for options in ({}, {"tracts": 3}, {"n_draws": 3}, {"grows": True}):
        census.main(blocks=300 if not options.get("grows") else 10_000, threads=1, **options)
    printed = capsys.readouterr().out
    for level in ("state", "county", "tract", "block group", "block"):
        assert f"\n{level}" in printed
    assert "3 draws" in printed
    assert "nodes" in printed


def test_noisy_measurements_are_measured():
    row = noisy_measurements.measured(1, 2, by_quarters=False, draws=10)
    assert row[:3] == ("1", "2", "504")
    assert len(row) == len(noisy_measurements.HEADER)
    row = noisy_measurements.measured_races(1, 2, draws=10)
    assert row[:3] == ("1", "2", "252")
    assert len(row) == len(noisy_measurements.RACES_HEADER)


# An unknown number of records --------------------------------------------------------------------

PRIORS = {"mu": stats.norm(), "phi": stats.expon(scale=2), "b0": stats.norm(), "b1": stats.norm()}
PRIORS |= {"tau": stats.expon()}


def after_an_update(law, draws=3_000, n=4):
    """Parameters from their prior, records given them, and then the parameters given these."""
    rng, found = np.random.default_rng(7), []
    for _ in range(draws):
        parameters = np.array([PRIORS[name].rvs(random_state=rng) for name in law.names])
        records = np.empty((n, law.width))
        for record in records:
            law.draw_record(rng, parameters, record)
        law.draw_parameters(rng, records, parameters)
        found.append(parameters)
    return dict(zip(law.names, np.transpose(found), strict=True))


def farthest(law):
    found = after_an_update(law)
    return min(stats.kstest(x, PRIORS[name].cdf).pvalue for name, x in found.items())


@pytest.mark.parametrize("name", ["Regression", "Normal"])
def test_parameters_of_reversible_jumps_are_drawn_given_the_records(name):
    law = unknown_number.LAWS[name]
    assert farthest(law) > 1e-3

    class Broken(type(law)):
        @staticmethod
        def draw_parameters(rng, records, parameters):
            law.draw_parameters(rng, records[:-1], parameters)
            parameters[1] *= 1.2

    assert farthest(Broken()) < 1e-6


def test_the_table_of_an_unknown_number_has_a_ratio_to_reversible_jumps():
    result = {"ms per draw": 0.5, "slowest": "mu", "posterior": {"n": [1001.2, 14.6]}}
    result["of n"] = 1200.0
    found = [
        ({"law": "Normal", "way": "pmd.sample"}, result | {"effective draws per second": 900.0}),
        (
            {"law": "Normal", "way": "reversible jumps"},
            result | {"effective draws per second": 45.0},
        ),
    ]
    *_, ours, _ = unknown_number.table(found).splitlines()
    assert ours == "| normal law | pmd.sample | 0.5 | 900 (mu) | 1200 | 20 | 1001 ± 15 |"


@pytest.mark.parametrize("name", measured_records.MODELS)
def test_records_of_all_models_of_measurements_are_read_as_measured(name):
    model = measured_records.with_sums(measured_records.MODELS[name])
    laws = laws_given_measurements(view_of(model), [model["x"], model["y"]])
    assert list(laws) == [model["x"]]


def test_sweeps_over_people_and_those_by_hand_take_as_many_proposals():
    people = 20_000
    given = microdata.release(people, 3)
    _, ours = microdata.ours(given, people, 30)
    error = np.sqrt(2 * ours * (1 - ours) / people)
    _, by_hand = microdata.by_hand(given, people, 3, 30)
    assert abs(ours - by_hand) < 4 * error
    # A loop that is told half the noise refuses more.
    _, twin = microdata.by_hand(given, people, 3, 30, sigma=microdata.SIGMA / 2)
    assert abs(ours - twin) > 8 * error


def test_sweeps_over_records_of_quantiles_are_timed(capsys, monkeypatch):
    monkeypatch.setattr("sys.argv", ["quantiles", "--short"])
    example_2, _, median, *_ = quantiles.MODELS
    two = {name: quantiles.MODELS[name] for name in (example_2, median)}  # each is compiled
    monkeypatch.setattr(quantiles, "MODELS", two)
    quantiles.main()
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert header == "| released | 10,000 records, ns | times example 2 |"
    assert [row.count(" | ") for row in rows] == [2, 2]


def test_cells_that_look_worst_are_judged_by_the_other_chain():
    """Of independent draws, those that look worst in one chain are like all others in the other."""
    chains = np.random.default_rng(1).normal(size=(2, 1_000, 500))
    times = [1 / effective_draws(x) for x in chains]  # autocorrelation times, by 1,000 draws
    judged = adult_pairs.judged_by_the_other(chains)
    for chosen, other, (_, some) in zip(times, times[::-1], judged, strict=True):
        allowed = 4.5 * other.std() / np.sqrt(5)
        assert np.sort(chosen)[-5:].mean() > other.mean() + allowed
        assert abs(2 / some - other.mean()) < allowed
    chains[..., 7] = np.repeat(chains[:, ::100, 7], 100, axis=1)  # truly slow, in both
    for one, _ in adult_pairs.judged_by_the_other(chains):
        assert one < 100


def test_the_ratio_of_people_drawn_anew_is_that_of_the_release():
    rng = np.random.default_rng(2)
    people = rng.integers(3, size=(40, 3))
    tables = drawn_anew.Tables(people, 50, rng)
    replaced, by = rng.choice(40, 10, replace=False), rng.integers(40, size=10)
    after = people.copy()
    after[replaced] = people[by]

    def log_density(rows, released):
        return stats.norm.logpdf(released, pair_counts(rows), 50).sum()

    released = pair_counts(people) + tables.noise
    expected = log_density(after, released) - log_density(people, released)
    assert tables.log_ratio(replaced, by) == pytest.approx(expected, abs=1e-9)


def pair_counts(rows):
    """Counts of three categories by three, of all pairs of columns."""
    cells = [3 * rows[:, j] + rows[:, k] for j, k in combinations(range(3), 2)]
    return np.concatenate([np.bincount(x, minlength=9) for x in cells])


# Coverage of microdata ----------------------------------------------------------------------------


def test_the_regression_of_the_truth_is_what_it_was_made_by():
    """Sex follows income, so that its odds, by Bayes' rule, are a coefficient."""
    beta, variances = microdata_coverage.regression(1e6 * microdata_coverage.truth())
    female, male = np.log(0.38 / 0.55), np.log(0.62 / 0.45)
    np.testing.assert_allclose(beta, [female - 1.2, 0.5, 0.2, 0.9, male - female], atol=1e-9)
    assert np.all(variances > 0)
    estimates, _ = microdata_coverage.analysed(microdata_coverage.truth())
    intervals = np.stack([estimates - 0.01, estimates + 0.01], axis=-1)
    off = np.stack([intervals, intervals, intervals + 0.02])
    np.testing.assert_allclose(microdata_coverage.coverage(off), 2 / 3)


def test_coverage_of_people_counts_what_is_held_and_goes_on_where_it_stopped(tmp_path):
    study, file = ("latent_classes", "prior", 40), tmp_path / "lines"
    people_coverage.releases(*study, 1, file)
    first = file.read_text()
    people_coverage.releases(*study, 2, file)
    assert file.read_text().startswith(first)
    assert len(people_coverage.read(file)) == 2
    np.testing.assert_allclose(people_coverage.of_classes().sum(), 1)
    true = microdata_coverage.analysed(1_500 * people_coverage.of_classes())[0]
    around = np.stack([true - 0.1, true + 0.1], axis=-1)
    shares = slice(len(true) - len(microdata_coverage.COEFFICIENTS))
    line = {"true": true[shares].tolist(), "rank": [], "ess": [100, 200], "combine": around}
    found = [line | {"posterior": around[shares] + off} for off in (0, 0.3)]
    posterior, combined = people_coverage.rows("latent_classes", found)
    assert posterior[4:8] == ["posterior", "50.0 ± 50.0", "50.0 to 50.0", "20.0"]
    assert combined[5:] == ["100.0 ± 0.0", "100.0 to 100.0", "20.0", *["100.0"] * 5, ""]


# Microdata beside twinify and private-pgm ---------------------------------------------------------


def test_the_truth_scores_no_error_and_is_held_where_draws_lie_around_it():
    true, pairs = microdata_peers.truth(), microdata_peers.CHOSEN
    np.testing.assert_allclose(true.sum(), 1)
    odds = true[1, 0, 0, 1, 0]  # whose logit is 1 + 2
    np.testing.assert_allclose(np.log(odds[1] / odds[0]), 3)
    assert microdata_peers.scores(true, pairs) == [0]
    around = np.stack([0.9 * true, true, 1.1 * true])
    np.testing.assert_allclose(microdata_peers.scores(around, pairs), [0, 1, 1, 1], atol=1e-12)
    error, *covered = microdata_peers.scores(1.2 * around, pairs)
    assert (covered, pytest.approx(error)) == ([0, 0, 0], 10)
    way = ("way", 5, np.array([[1.0, 0.9, np.nan, 0.7], [2.0, 0.8, np.nan, 0.7]]), [3.0, 1.0, 2.0])
    row = ["way", "5", "1.50", "85.0 ± 3.5", "", "70.0 ± 0.0", "3.0", "1.5"]
    assert microdata_peers.six_row(*way) == row


def test_columns_and_a_tree_are_read_off_noisy_tables():
    rng, sizes = np.random.default_rng(0), (2, 3, 4)
    shares = [rng.dirichlet(np.ones(k)) for k in sizes]
    alone = microdata_peers.product_of(shares)
    tables = {at: 100 * microdata_peers.margin(alone, at, 3) for at in combinations(range(3), 2)}
    for found, share in zip(microdata_peers.one_way(sizes, tables, 100), shares, strict=True):
        np.testing.assert_allclose(found, share)
    tied = np.array([[40.0, 10.0], [10.0, 40.0]])
    apart = np.full((2, 2), 25.0)
    made = class_modes.Problem(100, (2, 2, 2), (tied, apart, 0.8 * tied + 0.2 * apart), sigma=1.0)
    strength = microdata_peers.strengths(made)
    np.testing.assert_allclose(strength[0, 2], -4 * np.sqrt(2 / np.pi))
    assert sorted(microdata_peers.tree(strength, 3)) == [(0, 1), (1, 2)]


@pytest.mark.parametrize("way", ["classes", "regressions"])
def test_tables_of_latent_people_are_counted(way):
    rng, sizes = np.random.default_rng(1), (2, 3, 2)
    people = rng.integers(0, sizes, (200, 3))
    pairs, released = list(combinations(range(3), 2)), []
    for j, k in pairs:
        table = np.zeros((sizes[j], sizes[k]))
        np.add.at(table, (people[:, j], people[:, k]), 1)
        released.append(table + rng.normal(0, 0.5, table.shape))
    problem = class_modes.Problem(200, sizes, tuple(released), sigma=0.5)
    options = {"chains": 1, "tune": 100, "draws": 100}
    by_classes = partial(microdata_peers.by_classes, classes=2)
    draw = by_classes if way == "classes" else microdata_peers.by_regressions
    found, seconds = draw(problem, [*pairs, (0, 1, 2)], **options)
    assert seconds > 0
    assert found[0, 1, 2].shape == (20, 2, 3, 2)
    for at, noisy in zip(pairs, released, strict=True):
        margins = microdata_peers.margin(found[0, 1, 2], at, 3)
        np.testing.assert_array_equal(margins, found[at])
        assert np.abs(found[at] - noisy).max() < 6 * 0.5


# Modes of latent classes --------------------------------------------------------------------------

SIZES, CLASSES = (2, 3, 2, 2), 3


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    released = (rng.normal(8, 3, (SIZES[j], SIZES[k])) for j, k in combinations(range(4), 2))
    return class_modes.Problem(50, SIZES, tuple(released), sigma=2.0)


def moments_by_enumeration(problem, logits):
    """Mean and covariance of the cells, from all that one person can be."""
    p, *tables = problem.split(logits, CLASSES)
    cells, probabilities = [], []
    for person in product(*map(range, SIZES)):
        own = [table[:, k] for table, k in zip(tables, person, strict=True)]
        probabilities.append(p @ np.prod(own, axis=0))
        seen = [np.zeros((SIZES[j], SIZES[k])) for j, k in problem.pairs]
        for table, (j, k) in zip(seen, problem.pairs, strict=True):
            table[person[j], person[k]] = 1
        cells.append(np.concatenate([x.ravel() for x in seen]))
    mean = probabilities @ np.array(cells)
    covariance = np.cov(np.array(cells).T, aweights=probabilities, ddof=0)
    return 50 * mean, 50 * covariance + 4 * np.eye(len(mean))


def differences(function, at, step=1e-6):
    each = step * np.eye(len(at))
    return np.array([(function(at + e) - function(at - e)) / (2 * step) for e in each])


def test_the_likelihood_of_classes_has_the_moments_of_all_people(problem):
    logits = np.random.default_rng(1).normal(size=CLASSES * (1 + sum(SIZES)))
    mean, covariance = moments_by_enumeration(problem, logits)
    by_class, found, of_both = class_modes.moments(problem, *parted(problem, logits))
    np.testing.assert_allclose(found, mean)
    np.testing.assert_allclose(of_both, covariance, atol=1e-12)
    slopes = class_modes.slopes(problem, *parted(problem, logits), by_class)
    by_differences = differences(lambda x: moments_by_enumeration(problem, x)[0], logits)
    np.testing.assert_allclose(slopes, by_differences.T, atol=1e-7)
    gradient = class_modes.loss(logits, problem, CLASSES, 0.7)[1]
    by_differences = differences(lambda x: class_modes.loss(x, problem, CLASSES, 0.7)[0], logits)
    np.testing.assert_allclose(gradient, by_differences, rtol=1e-5, atol=1e-6)
    # A twin that forgets that both tables see the same category of a column.
    line = "table = table[:, :, None] * np.eye(table.shape[1])"
    with edited(class_modes, "within", {line: "table = table[:, :, None] * table[:, None, :]"}):
        _, _, of_both = class_modes.moments(problem, *parted(problem, logits))
    assert not np.allclose(of_both, covariance, atol=0.1)


def parted(problem, logits):
    p, *tables = problem.split(logits, CLASSES)
    return p, tables


def test_probabilities_of_classes_add_up_to_one():
    people = np.random.default_rng(2).integers(0, SIZES, (7, 4))
    shares = [(0, 1, *rest) for rest in product((0, 1), repeat=5)]
    share_out = in_python(class_modes.share_out)
    weights = np.array([[0.3, 1.2, 0.0], [0.4, 0.5, 0.6], [1.0, 1.0, 0.0], [2.0, 0.1, 0.0]])
    each = [share_out(people, np.array(x), weights) for x in shares]
    np.testing.assert_allclose(np.exp(each).sum(), 1)
    assert np.ptp(each) > 0.5
    every = product(product(range(2), range(3)), repeat=3)  # three people of two columns
    weights = [np.array([0.3, 1.2]), np.array([0.4, 0.5, 0.6])]
    found = [class_modes.log_classes(np.array(x), weights) - np.log(6) for x in every]
    np.testing.assert_allclose(np.exp(found).sum(), 1)


def test_chains_of_nuts_have_the_posterior_of_classes():
    """Their cells' mean is that of draws from the prior, weighted by the likelihood."""
    released = np.array([[20.0, 5.0], [5.0, 20.0]])
    problem = class_modes.Problem(50, (2, 2), (released,), sigma=5.0)
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(2), 100_000)
    first, second = (rng.dirichlet(prior, p.shape) for prior in problem.weights)
    cells = np.einsum("dk,dka,dkb->dab", p, first, second).reshape(len(p), -1)
    [drawn] = class_modes.by_nuts(problem, 1, classes=2, tune=200, draws=500)
    n_effective = [effective_draws(x[:, None])[0] for x in drawn.T]
    errors = drawn.std(axis=0) / np.sqrt(n_effective)

    def off(times):
        sd = np.sqrt(25 + times * 50 * cells)
        weights = stats.norm.pdf(released.ravel(), 50 * cells, sd).prod(axis=1)
        return np.abs(drawn.mean(axis=0) - np.average(cells, axis=0, weights=weights)) / errors

    assert np.all(off(1) < 4)
    assert np.any(off(30) > 8)  # as if counts varied more than Poisson ones


def test_a_child_that_dies_without_a_word_is_told_of(monkeypatch):
    def died(*_, **__):
        return subprocess.CompletedProcess([], returncode=-9, stdout="", stderr="")

    monkeypatch.setattr(subprocess, "run", died)
    assert untuned.measured("incomes") == "ended by exit code -9, and says nothing"
