"""CountStep as a step of PyMC's: protocol, seeds, shared data, starts, refusals."""

import warnings
from itertools import product

import cloudpickle
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from arviz_stats import ess
from pymc.exceptions import SamplingError
from pymc.step_methods.state import equal_dataclass_values

import pymc_dapper as pmd
from pymc_dapper import ReadingError
from pymc_dapper.counts.kernels.schedule import Packed
from pymc_dapper.counts.reading.invariant import invariant
from pymc_dapper.counts.step import CountStep
from tests.admissions_and_tiny import N_APPLICANTS, admissions_table
from tests.against_python import assert_same_in_python
from tests.evaluated_in_python import evaluated_in_python


@pytest.fixture(scope="module")
def model():
    return admissions_table()


@pytest.fixture(scope="module")
def step(model):
    with evaluated_in_python():
        return CountStep([model["x"]], model=model)


# In every run, a compiled step of tables that are linked: statistical/test_linked_tables.py.
@pytest.fixture(scope="module")
def compiled(model):
    return CountStep([model["x"]], model=model)


@pytensor.config.change_flags(mode="FAST_COMPILE")
def sample(model, step, **kwargs):
    options = {"draws": 20, "tune": 10, "chains": 2, "cores": 1, "random_seed": 5} | kwargs
    with model:
        return pm.sample(
            step=[step, pm.Metropolis([model["p"]])],
            progressbar=False,
            compute_convergence_checks=False,
            **options,
        )


@pytest.mark.long
def test_the_same_seed_gives_the_same_draws_on_any_number_of_cores(model, compiled):
    options = {}, {"cores": 2}, {"random_seed": 6}
    runs = [sample(model, compiled, **each) for each in options]
    first, second, other = (run.posterior["x"].values for run in runs)
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)
    stats = runs[0].sample_stats
    assert np.all((stats["count_accept"] > 0) & (stats["count_accept"] <= 1))
    assert np.all(first.sum(axis=-1) == N_APPLICANTS)


def test_the_log_density_is_the_models_but_for_what_does_not_depend_on_counts(model, step):
    idata = sample(model, step, chains=1)
    logp = model.compile_logp([model["x"], model["privacy"]], mode="FAST_COMPILE")
    natural = pt.vector("natural")
    simplex = model.rvs_to_transforms[model["p"]].forward(natural)
    forward = pytensor.function([natural], simplex, mode="FAST_COMPILE")
    x, p = idata.posterior["x"].values[0], idata.posterior["p"].values[0]
    # The counts of a draw were updated given the draw of p before it.
    expected = [
        logp({"x": counts, "p_simplex__": forward(before)})
        for counts, before in zip(x[1:], p[:-1], strict=True)
    ]
    found = idata.sample_stats["count_logp"].values[0, 1:]
    assert np.std(expected) > 0.1
    assert np.ptp(found - np.array(expected)) < 1e-9


@pytest.mark.long
def test_the_kernel_does_the_same_in_python(model, compiled):
    assert_same_in_python(compiled, compiled.sweep.update, model.initial_point())


def test_sampling_state_restores_a_draw_exactly(model, step):
    step.setup_chain(np.random.default_rng(7), tune=5, draws=10)
    point = model.initial_point()
    for _ in range(3):
        point, _ = step.step(point)
    saved = step.sampling_state
    first, stats = step.step(point)
    elsewhere, _ = step.step(first)
    assert not np.array_equal(elsewhere["x"], first["x"])
    step.sampling_state = saved
    assert equal_dataclass_values(step.sampling_state, saved)
    again, again_stats = step.step(point)
    np.testing.assert_array_equal(again["x"], first["x"])
    assert again_stats == stats


def test_a_sweep_that_runs_out_of_random_numbers_goes_on_with_the_same_stream(model, step):
    step.setup_chain(np.random.default_rng(7), tune=0, draws=10)
    point = model.initial_point()
    counts, given, results = step._counts(point), step._given(point), []
    for room in (1, 5, 1_000):
        tuning = Packed(np.append(step.integers[:-1], room), step.numbers)
        results.append(step.sweep(np.random.default_rng(3), counts, tuning, given).counts)
    np.testing.assert_array_equal(results, results[:1] * 3)
    # If the first of them were left out instead, the tables would differ.
    for room in (1, 5):
        later = np.random.default_rng(3)
        later.random(room)
        assert not np.array_equal(step.sweep(later, counts, tuning, given).counts, results[0])


def test_cells_that_moved_in_a_block_count_as_moved(model, step):
    step.setup_chain(np.random.default_rng(7), tune=5, draws=10)
    changed = np.zeros((3, 4), dtype=bool)
    changed[1, 2] = True
    step.passed(3, [np.zeros((3, 9)), changed])
    assert step.sweeps_done == 3
    np.testing.assert_array_equal(step.moved, [False, False, True, False])


@pytest.mark.long
def test_a_pickled_step_draws_the_same_and_leaves_its_point_alone(model, compiled):
    point = model.initial_point()
    before, results = point["x"].copy(), []
    for each in (compiled, cloudpickle.loads(cloudpickle.dumps(compiled))):
        each.setup_chain(np.random.default_rng(8), tune=0, draws=10)
        results.append(each.step(point)[0]["x"])
    np.testing.assert_array_equal(*results)
    np.testing.assert_array_equal(point["x"], before)
    assert results[0].dtype == before.dtype


def test_shared_data_are_read_again_when_a_chain_starts(model, step):
    old = model["released"].get_value()
    try:
        pm.set_data({"released": np.array([300.0, 40, 30, 30])}, model=model)
        step.setup_chain(np.random.default_rng(8), tune=0, draws=10)
        point = model.initial_point()
        for _ in range(20):
            point, _ = step.step(point)
        assert point["x"][0] > 200
        pm.set_data({"released": np.zeros(3)}, model=model)
        with pytest.raises(ValueError, match=r"'released' had shape .*build a new step"):
            step.setup_chain(np.random.default_rng(8), tune=0, draws=10)
    finally:
        pm.set_data({"released": old}, model=model)


def test_it_says_how_the_model_was_read(step):
    assert repr(step) == "<CountStep: 4 cells of x; privacy>"
    described = step.describe()
    assert "x: 1 total" in described
    assert "6 exchanges between two cells, within 1 group" in described


def test_the_progress_bar_shows_how_many_moves_changed_something(step):
    columns, stats = step._progressbar_config(n_chains=2)
    assert columns[0].get_table_column().header == "Moved"
    assert stats == {"count_accept": [0.0] * 2}
    [update] = step._make_progressbar_update_functions()
    assert update({"count_accept": 0.5, "count_logp": -1.0}) == {"count_accept": 0.5}


@pytest.mark.usefixtures("uncompiled")
@pytest.mark.parametrize("cells", [4, 100])
def test_whole_evaluation_of_a_large_table_is_warned_of_by_name(cells):
    with pm.Model(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        x = pm.Poisson("x", 5, shape=cells)
        pm.Potential("privacy", -pt.sqrt(((x - 5) ** 2).sum()))
        CountStep([x])
    messages = [str(warning.message) for warning in caught]
    assert len(messages) == (cells == 100)
    for message in messages:
        assert "'privacy' isn't a sum of terms" in message
        assert "Sqrt" in message
        assert "over the 100 cells takes about" in message


# A large table -----------------------------------------------------------------------------------


# Nearly exact sums beside noisy cells are sampled in every run: statistical/test_counts.py.
@pytest.mark.long
def test_ten_thousand_cells_of_three_levels():
    """All levels' sums move to what was released; moves' and the model's log-densities agree."""
    shape, sigma, rng = (10, 10, 100), 10.0, np.random.default_rng(4)
    truth = rng.poisson(100, shape)
    counties = truth.sum(axis=2) + rng.normal(0, sigma, shape[:2])
    with pm.Model() as model:
        x = pm.Poisson("x", 100.0, shape=shape)
        invariant("states", x.sum(axis=(1, 2)), truth.sum(axis=(1, 2)))
        pm.Normal("counties", x.sum(axis=2), sigma, observed=counties)
        pm.Normal("tracts", x, sigma, observed=truth + rng.normal(0, sigma, shape))
        step = CountStep([x])
    logp = model.compile_logp(mode="FAST_COMPILE")
    step.setup_chain(np.random.default_rng(5), tune=10, draws=20)
    point, found = model.initial_point(), []
    for _ in range(30):
        point, [stats] = step.step(point)
        found.append((stats["count_logp"], logp(point)))
    values = np.array(found)
    assert np.ptp(values[:, 0]) > 100
    assert np.ptp(values[:, 0] - values[:, 1]) < 1e-9 * np.abs(values).max()
    np.testing.assert_array_equal(point["x"].sum(axis=(1, 2)), truth.sum(axis=(1, 2)))
    z = (point["x"].sum(axis=2) - counties) / sigma
    # The mean of 100 squares, each of about 1, has a standard error of 0.14; it starts at 100.
    assert 0.4 < np.mean(z**2) < 1.7


# Parameters marginalised --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def marginalised(model):
    with evaluated_in_python():
        return CountStep([model["x"]], integrate=[model["p"]], model=model)


def test_a_parameter_that_is_marginalised_is_drawn_by_the_same_step(model, marginalised):
    assert [x.name for x in marginalised.vars] == ["x", "p_simplex__"]
    assert "Marginalised, and then drawn:\n  p ~ Dirichlet, given x" in marginalised.describe()
    with model, evaluated_in_python():
        posterior = pm.sample(
            step=[marginalised], draws=20, tune=10, chains=2, cores=2, random_seed=5,
            progressbar=False, compute_convergence_checks=False,
        ).posterior  # fmt: skip
    assert np.all(np.diff(posterior["p"].values, axis=1) != 0)
    # The counts don't depend on where the parameter was.
    start, ends = model.initial_point(), []
    for p in (start["p_simplex__"], np.array([3.0, -2.0, 1.0])):
        marginalised.setup_chain(np.random.default_rng(3), tune=0, draws=5)
        ends.append(marginalised.step({**start, "p_simplex__": p})[0])
    np.testing.assert_array_equal(ends[0]["x"], ends[1]["x"])
    np.testing.assert_array_equal(ends[0]["p_simplex__"], ends[1]["p_simplex__"])


def test_sampling_state_restores_a_draw_of_the_parameter_too(model, marginalised):
    marginalised.setup_chain(np.random.default_rng(7), tune=5, draws=10)
    point = model.initial_point()
    for _ in range(3):
        point, _ = marginalised.step(point)
    saved = marginalised.sampling_state
    first, _ = marginalised.step(point)
    marginalised.step(first)
    marginalised.sampling_state = saved
    again, _ = marginalised.step(point)
    for name in first:
        np.testing.assert_array_equal(again[name], first[name])


# Known totals ------------------------------------------------------------------------------------


def test_a_start_with_the_known_totals_is_found_and_the_model_stays_as_it_is():
    with evaluated_in_python(), pm.Model() as m:
        x = pm.Binomial("x", n=40, p=0.5, shape=(2, 3))
        total = pm.Data("total", np.array([100, 7]))
        invariant("totals", x.sum(axis=1), total)
        pm.Normal("released", x, 3.0, observed=np.full((2, 3), 10.0))
        start = m.initial_point()["x"]
        step = CountStep([x], max_start_sweeps=50)
    assert np.all(start.sum(axis=1) != [100, 7])
    np.testing.assert_array_equal(m.initial_point()["x"], start)

    def step_with(total):
        pm.set_data({"total": np.array(total)}, model=m)
        step.setup_chain(np.random.default_rng(1), tune=0, draws=5)
        return step.step({"x": start})[0]["x"]

    np.testing.assert_array_equal(step_with([100, 7]).sum(axis=1), [100, 7])
    # Other totals, the same model: the chain starts from a table that has them.
    np.testing.assert_array_equal(step_with([20, 0]).sum(axis=1), [20, 0])
    # More than three cells of 40 can hold.
    with pytest.raises(SamplingError, match=r"no possible start .* an impossible total"):
        step_with([121, 0])


# Refusals ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def refused():
    with pm.Model() as m:
        rate = pm.Gamma("rate", 2, 1)
        pm.Categorical("record", p=np.ones(3) / 3, shape=5)
        pm.Geometric("waiting", 0.3)
        pm.DiscreteUniform("difference", -5, 5)
        pm.Poisson("seen", rate, observed=3)
        count = pm.Poisson("count", rate)
        pm.Deterministic("double", 2 * count)
    return m


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rate", "'rate' is continuous: CountStep updates counts"),
        ("record", "'record' is not a count but has a category for each record: DapperStep"),
        ("waiting", "'waiting' has a prior that CountStep doesn't know"),
        ("difference", "'difference' may be negative: CountStep updates counts"),
        ("seen", "'seen' is observed: .* latent counts that it depends on"),
        ("double", "'double' is computed from other variables"),
        ("count", "nothing in the model depends on the counts 'count'"),
    ],
)
def test_what_is_no_latent_count_is_refused_by_name(refused, name, message):
    with pytest.raises(ReadingError, match=message):
        CountStep([refused[name]], model=refused)


def test_other_arguments_go_by_name(model):
    with pytest.raises(TypeError, match="takes only the counts by position"):
        CountStep([model["x"]], model)
    with pytest.raises(ReadingError, match="no variables: pass the counts"):
        CountStep([], model=model)
    with pytest.raises(ValueError, match="max_start_sweeps must be a whole number of at least 1"):
        CountStep([model["x"]], model=model, max_start_sweeps=0)


def test_a_release_of_another_shape_is_refused():
    with pm.Model():
        released = pm.Data("released", np.zeros(3))
        x = pm.Multinomial("x", n=10, p=np.ones(4) / 4)
        pm.Potential("privacy", -((released - x) ** 2).sum())
        with pytest.raises(ReadingError, match=r"'privacy' can't be evaluated with the shapes"):
            CountStep([x])


def test_totals_that_contradict_each_other_are_refused():
    with pm.Model():
        x = pm.Multinomial("x", n=10, p=np.ones(4) / 4)
        invariant("published", x.sum(), 12)
        pm.Normal("released", x, 1.0, observed=np.ones(4))
        with pytest.raises(ReadingError, match=r"no table of counts .*'published' and 'x' fix"):
            CountStep([x])


@pytest.mark.long  # above, a chain refuses such a total in the same words
def test_counts_that_cannot_reach_a_total_are_refused():
    with pm.Model():
        x = pm.Binomial("x", n=[3, 4], p=0.5)
        invariant("published", x.sum(), 9)
        pm.Normal("released", x, 1.0, observed=np.ones(2))
        with pytest.raises(ReadingError, match=r"no possible start .* an impossible total"):
            CountStep([x], max_start_sweeps=3)


def test_a_total_that_another_step_changes_is_refused():
    with pm.Model():
        n = pm.Poisson("n", 20)
        x = pm.Multinomial("x", n=n, p=np.ones(3) / 3)
        pm.Normal("released", x, 1.0, observed=np.ones(3))
        with pytest.raises(ReadingError, match=r"'x' fixes depends on 'n'.*the same CountStep"):
            CountStep([x])


TOO_LARGE = {
    "t": lambda: pm.Multinomial("t", n=2**62, p=np.ones(3) / 3),
    "t, of rates": lambda: pm.Poisson("t", 2.0**62, shape=2),
    "n', 't": lambda: pm.Multinomial("t", n=pm.Poisson("n", 2.0**62), p=np.ones(3) / 3),
    "t, of which some": lambda: pm.Binomial("t", n=[5, 2**62], p=0.5),
}


@pytest.mark.parametrize("name", TOO_LARGE)
def test_counts_that_floats_cannot_tell_apart_are_refused(name):
    with pm.Model() as model:
        table = TOO_LARGE[name]()
        pm.Normal("released", table, 1e30, observed=np.ones(table.type.shape))
        where = name.split(", of")[0] + ("' at \\[1\\]" if "some" in name else "'")
        with pytest.raises(ReadingError, match=f"too large at '{where}: CountStep takes at most"):
            CountStep(model.free_RVs)


def test_a_start_that_is_far_from_what_was_released_is_brought_near():
    released = np.array([7e11, 2e11, 1e11])
    with pm.Model() as model:
        x = pm.Multinomial("x", 10**12, np.full(3, 1 / 3))
        z = pm.Multinomial("z", 9, np.full(3, 1 / 3))
        pmd.GaussianMechanism(1.0).potential("privacy", x, released=released)
        pmd.GaussianMechanism(1.0).potential("other", z, released=[8.0, 0.0, 1.0])
    with evaluated_in_python():
        far, near = CountStep([x], model=model), CountStep([z], model=model)
    point = model.initial_point()
    assert np.abs(point["x"] - released).max() > 1e11
    far.setup_chain(np.random.default_rng(1), tune=0, draws=1)
    with evaluated_in_python():
        after = far.step(point)[0]["x"]
    assert after.sum() == 10**12
    # Weighing the prior, which is flat at such distances, and the noise: far less than the way.
    assert np.abs(after - released).max() < 1e6
    np.testing.assert_array_equal(near._found[1], [3, 3, 3])


def nested(crossing=False):
    with pm.Model() as model:
        x = pm.Poisson("x", 4.0, shape=(2, 2))
        pmd.DiscreteGaussianMechanism(2.0).potential("cells", x, released=[[1, 9], [4, -2]])
        pmd.DiscreteGaussianMechanism(1.0).potential("rows", x.sum(axis=1), released=[9, 3])
        pmd.invariant("all", x.sum(), 14)
        if crossing:
            pmd.LaplaceMechanism(1.0).potential("columns", x.sum(axis=0), released=[5.0, 9.0])
    return model


def test_counts_on_a_tree_are_drawn_anew():
    model = nested()
    with evaluated_in_python():
        step = CountStep([model["x"]], model=model, tree=True)
        assert "drawn together, on their tree" in step.describe()
        runs = []
        for seed in (1, 1, 2):
            step.setup_chain(np.random.default_rng(seed), tune=2, draws=8)
            point, drawn = model.initial_point(), []
            for _ in range(10):
                point, [stats] = step.step(point)
                drawn.append(point["x"])
                logp = step.sweep.log_density(point["x"].ravel(), step._given(point))
                assert stats["count_logp"] == pytest.approx(logp)
            runs.append(np.array(drawn))
    np.testing.assert_array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])
    assert np.all(runs[0].sum(axis=(1, 2)) == 14)


@pytest.mark.long
def test_draws_on_a_tree_go_on_with_the_same_ones_from_messages_that_are_passed_anew():
    """Where cells are alike, so that rounding decides which of their messages is the narrower."""
    with pm.Model() as model:
        x = pm.Poisson("x", 3.0, shape=6)
        pmd.DiscreteGaussianMechanism(6.0).potential("all", x.sum(), released=40)
    with evaluated_in_python():
        step, other = (CountStep([x], model=model, tree=True) for _ in range(2))
        for seed in range(8):
            step.setup_chain(np.random.default_rng(seed), tune=0, draws=20)
            point = model.initial_point()
            for _ in range(5):
                point, _ = step.step(point)
            other.setup_chain(np.random.default_rng(9), tune=0, draws=20)
            other.sampling_state, resumed = step.sampling_state, point
            for _ in range(15):
                point, _ = step.step(point)
                resumed, _ = other.step(resumed)
            np.testing.assert_array_equal(point["x"], resumed["x"])


def test_messages_are_passed_again_when_data_change():
    model = nested()
    with evaluated_in_python():
        step = CountStep([model["x"]], model=model, tree=True)
        means = []
        for released in ([[1, 9], [4, -2]], [[9, 1], [-2, 4]]):
            pm.set_data({"cells_released": released}, model=model)
            step.setup_chain(np.random.default_rng(1), tune=0, draws=80)
            point, drawn = model.initial_point(), []
            for _ in range(80):
                point, _ = step.step(point)
                drawn.append(point["x"])
            means.append(np.mean(drawn, axis=0))
    assert np.all(np.abs(means[0] - means[1][:, ::-1]) < 1)
    assert np.abs(means[0] - means[1]).max() > 2


def test_a_release_that_breaks_the_tree_is_named():
    model = nested(crossing=True)
    with (
        evaluated_in_python(),
        pytest.raises(
            ReadingError, match=r"tree=True: .*'columns' .*neither sum contains the other"
        ),
    ):
        CountStep([model["x"]], model=model, tree=True)
    with pytest.raises(TypeError, match="tree must be True or False"):
        CountStep([model["x"]], model=model, tree=1)


def flat_counts():
    """Counts flat between limits, with a release beyond a limit, and their noisy total."""
    with pm.Model() as model:
        x = pm.DiscreteUniform("x", 4, [30, 34, 40])
        pmd.DiscreteLaplaceMechanism(3.0).potential("cells", x, released=[2, 33, 20])
        pmd.GaussianMechanism(2.0).potential("all", x.sum(), released=60.0)
    return model


def means_of_flat_counts(lowest=4):
    x = np.array(list(product(range(lowest, 31), range(lowest, 35), range(lowest, 41))))
    logp = -np.abs(x - [2, 33, 20]).sum(axis=1) / 3 - (x.sum(axis=1) - 60) ** 2 / 8
    weights = np.exp(logp - logp.max())
    return weights @ x / weights.sum()


def test_flat_counts_are_drawn_by_their_law():
    with evaluated_in_python():
        options = {"tune": 100, "chains": 2, "cores": 1, "random_seed": 2, "quiet": True}
        result = pmd.sample(300, model=flat_counts(), **options)
    draws = result.posterior["x"]
    assert draws.min() >= 4
    effective = ess(result)["x"].values
    assert effective.min() > 100
    error = draws.std(("chain", "draw")).values / np.sqrt(effective)

    def largest_difference(lowest):
        difference = draws.mean(("chain", "draw")).values - means_of_flat_counts(lowest)
        return np.abs(difference / error).max()

    assert largest_difference(4) < 4
    # A law whose lower limit is two less is another law.
    assert largest_difference(2) > 4
