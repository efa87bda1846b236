"""GibbsStep: the chain is that of the same steps in a list, however its iterations are computed."""

import os
import signal

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numpy.linalg import LinAlgError
from pymc.exceptions import SamplingError
from pymc.step_methods.compound import CompoundStep

from pymc_dapper import (
    ConjugateStep,
    CountStep,
    DapperStep,
    FunctionStep,
    GibbsStep,
    InterweaveStep,
    SizeStep,
    assign_steps,
    present,
)
from pymc_dapper.backend.iterations import Iterations
from pymc_dapper.steps import gibbs
from tests.evaluated_in_python import evaluated_in_python
from tests.long_cases import one_in_three
from tests.states import same_states

TUNE, DRAWS = 8, 28


@pytest.fixture(scope="module")
def model():
    """A scalar, a vector and a matrix; and shared data."""
    with pm.Model() as model:
        released = pm.Data("released", 2.0)
        mu = pm.Normal("mu", 0, 1)
        x = pm.Normal("x", mu, 1, shape=(4, 2))
        y = pm.Normal("y", mu, 1, shape=4)
        pm.Normal("noisy_sum", x.sum() + y.sum(), 1.5, observed=released)
    return model


@pytest.fixture(scope="module")
def steps(model):
    with evaluated_in_python(), model:
        records = [model["x"], model["y"]]
        return [
            DapperStep(records, track_records=True),
            ConjugateStep([model["mu"]]),
            InterweaveStep([model["mu"]], records=records, moves=0),
        ]


@pytest.fixture(scope="module")
def discrete():
    """Records whose noise is drawn anew before they move with their parameter."""
    with evaluated_in_python(), pm.Model() as model:
        p = pm.Beta("p", 2, 2)
        record = pm.Bernoulli("record", p, shape=5)
        pm.Normal("noisy_sum", record.sum(), 1.5, observed=2.0)
        return model, [
            DapperStep([record]),
            ConjugateStep([p]),
            InterweaveStep([p], records=[record], moves=2),
        ]


@pytest.fixture(scope="module")
def alike():
    """Variables of the same shape, which could be taken for each other."""
    with evaluated_in_python(), pm.Model() as model:
        a, b = pm.Normal("a", 0, 1), pm.Normal("b", 9, 1)
        records = [pm.Normal("x", a, 1, shape=3), pm.Normal("y", b, 1, shape=3)]
        pm.Normal("noisy_sum", records[0].sum() + 2 * records[1].sum(), 1.5, observed=50.0)
        return model, [DapperStep(records), ConjugateStep([a]), ConjugateStep([b])]


@pytest.fixture(
    scope="module",
    params=["counts", pytest.param("totals", marks=pytest.mark.long), "an unknown number"],
)
def others(request):
    """Counts, with a parameter marginalised and another one; totals; records and their number."""
    with evaluated_in_python(), pm.Model() as model:
        if request.param == "totals":
            mean = pm.Gamma("mean", 9.0, 1.0)
            n = pm.Poisson("n", mean)
            m = pm.Multinomial("m", n, [0.4, 0.6])
            x = pm.Multinomial("x", m, [[0.2, 0.3, 0.5]] * 2)
            pm.Normal("noisy", x, 1.5, observed=[[1.0, 2.0, 3.0], [0.0, 5.0, 1.0]])
            return model, [CountStep([n, m, x]), ConjugateStep([mean])]
        if request.param == "counts":
            rate = pm.Gamma("rate", 2, 1)
            x = pm.Poisson("x", rate, shape=3)
            q = pm.Beta("q", 2, 2)
            y = pm.Binomial("y", n=9, p=q)
            pm.Normal("noisy_x", x, 1.5, observed=[1.0, 2.0, 3.0])
            pm.Normal("noisy_y", y, 1.5, observed=4.0)
            return model, [CountStep([x]), ConjugateStep([rate]), CountStep([y], integrate=[q])]
        n, p = pm.DiscreteUniform("n", 0, 5), pm.Beta("p", 2, 2)
        x = pm.Bernoulli("x", p, shape=5)
        pm.Normal("noisy_n", n, 1.5, observed=4.0)
        pm.Normal("noisy_sum", pt.switch(present(n, 5), x, 0).sum(), 1.5, observed=2.0)
        return model, assign_steps([x], interweave=False, progressbar=False)


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Blocks in short chains, too; no clock decides on how long they are."""
    monkeypatch.setattr(gibbs, "FEWEST", 0)
    monkeypatch.setattr(gibbs, "SECONDS", 1e6)


@pytest.fixture
def computed(monkeypatch):
    """How many iterations each block had."""
    lengths, call = [], Iterations.__call__

    def counting(self, n, *arguments):
        lengths.append(n)
        return call(self, n, *arguments)

    monkeypatch.setattr(Iterations, "__call__", counting)
    return lengths


def begun(step, seed=1):
    step.setup_chain(np.random.default_rng(seed), TUNE, DRAWS)
    return step


def chain_of(step, model, n=TUNE + DRAWS, point=None, change=None):
    """Points and statistics."""
    point, found = model.initial_point() if point is None else point, []
    for k in range(n):
        if change is not None:
            point = change(k, point)
        point, stats = step.step(point)
        found.append((point, stats))
    return found


def same(one, other):
    """Whether chains are equal to the bit, statistics among them."""

    def equal(a, b):
        return a.keys() == b.keys() and all(
            (a[k] is None and b[k] is None)
            or (
                (np.asarray(a[k]).shape == np.asarray(b[k]).shape)
                and np.array_equal(a[k], b[k], equal_nan=np.asarray(a[k]).dtype.kind == "f")
            )
            for k in a
        )

    return len(one) == len(other) and all(
        equal(p, q) and len(s) == len(t) and all(map(equal, s, t))
        for (p, s), (q, t) in zip(one, other, strict=True)
    )


@pytest.fixture(scope="module")
def expected(model, steps):
    return chain_of(begun(CompoundStep(steps)), model)


@pytest.mark.parametrize("most", [1, 2, 7, 64])
def test_the_chain_is_that_of_the_steps_in_a_list(
    model, steps, expected, most, monkeypatch, computed
):
    monkeypatch.setattr(gibbs, "FIRST_BLOCK", most)
    monkeypatch.setattr(gibbs, "MOST", most)
    assert same(chain_of(begun(GibbsStep(steps)), model), expected)
    assert sum(computed) >= (20 if most > 1 else 0)
    assert max(computed, default=1) <= max(most, 2)


@pytest.mark.parametrize("moves", [1, 3])
def test_so_it_is_with_moves_by_interweaving(model, steps, discrete, moves, computed):
    with evaluated_in_python(), model:
        records = [model["x"], model["y"]]
        interweave = InterweaveStep([model["mu"]], records=records, moves=moves)
    for of, own in (model, [*steps[:2], interweave]), discrete:
        in_a_list = chain_of(begun(CompoundStep(own)), of)
        computed.clear()
        assert same(chain_of(begun(GibbsStep(own)), of), in_a_list)
        assert sum(computed) >= 20
        assert in_a_list[-1][1][2]["interweave_moves"] == (moves if of is model else 2)


def test_so_it_is_with_counts_and_numbers_of_records(others, computed):
    (model, own), stop = others, TUNE + 20
    in_a_list = chain_of(begun(CompoundStep(own)), model)
    assert same(chain_of(begun(GibbsStep(own)), model), in_a_list)
    assert sum(computed) >= 20
    one = begun(CompoundStep(own))
    chain_of(one, model, stop)
    in_a_list_state, other = one.sampling_state, begun(GibbsStep(own))
    [*_, (point, _)] = before = chain_of(other, model, stop)
    state = other.sampling_state
    assert same_states(state, in_a_list_state)
    begun(other, 99).sampling_state = state
    assert same(before + chain_of(other, model, TUNE + DRAWS - stop, point), in_a_list)


@pytest.mark.parametrize("others", ["an unknown number"], indirect=True)
def test_a_step_that_forgets_what_a_block_told_would_show(others, monkeypatch):
    """The twin of the test above: SizeStep adds up how near the end its numbers come."""
    model, own = others
    chain_of(begun(CompoundStep(own)), model)
    known = [each.sampling_state for each in own]
    passed = SizeStep.passed
    monkeypatch.setattr(SizeStep, "passed", lambda self, n, reports: passed(self, n, ()))
    chain_of(begun(GibbsStep(own)), model)
    again = [each.sampling_state for each in own]
    assert [same_states(*pair) for pair in zip(known, again, strict=True)].count(False) == 1


def test_a_step_that_cannot_make_statistics_of_a_block_is_called_by_itself(
    model, steps, expected, monkeypatch
):
    """SizeStep, say, if no number was possible: its error comes at that draw."""
    failed = []

    def statistics(self, n, reports):
        failed.append(n)
        raise SamplingError

    monkeypatch.setattr(ConjugateStep, "statistics", statistics)
    assert same(chain_of(begun(GibbsStep(steps)), model), expected)
    assert len(failed) > 1


def test_another_seed_gives_another_chain(model, steps, expected):
    assert not same(chain_of(begun(GibbsStep(steps), 2), model), expected)


def test_blocks_begin_short_while_nobody_knows_how_long_iterations_take(
    model, steps, monkeypatch, computed
):
    monkeypatch.setattr(gibbs, "SECONDS", 1e-9)
    chain_of(begun(GibbsStep(steps)), model)
    assert computed == []


@pytest.mark.parametrize("stop", one_in_three(range(TUNE, TUNE + DRAWS, 3)))
def test_a_state_within_a_block_is_that_of_its_draw(model, steps, expected, stop):
    one, other = begun(GibbsStep(steps)), GibbsStep(steps)
    [*_, (point, _)] = before = chain_of(one, model, stop)
    state = one.sampling_state
    in_a_list = begun(CompoundStep(steps))
    chain_of(in_a_list, model, stop)
    assert same_states(state, in_a_list.sampling_state)
    begun(other, 99).sampling_state = state
    assert same(before + chain_of(other, model, TUNE + DRAWS - stop, point), expected)


def test_a_state_at_the_end_of_a_block_in_place_of_the_draw_would_show(
    model, steps, expected, monkeypatch
):
    """The twin of the test above doesn't settle."""
    monkeypatch.setattr(GibbsStep, "_settle", lambda self: None)
    stop, one, other = TUNE + 3, begun(GibbsStep(steps)), GibbsStep(steps)
    [*_, (point, _)] = before = chain_of(one, model, stop)
    begun(other, 99).sampling_state = one.sampling_state
    assert not same(before + chain_of(other, model, TUNE + DRAWS - stop, point), expected)


def test_asking_for_a_state_changes_nothing(model, steps, expected):
    step = begun(GibbsStep(steps))

    def ask(k, point):
        assert step.sampling_state is not None
        return point

    assert same(chain_of(step, model, change=ask), expected)


def moved(k, point):
    """Another step, which moves a parameter now and then."""
    return {**point, "mu": point["mu"] + 1.0} if k % 5 == 3 else point


def test_what_others_moved_within_a_block_is_noticed(model, steps, computed):
    in_a_list = chain_of(begun(CompoundStep(steps)), model, change=moved)
    assert same(chain_of(begun(GibbsStep(steps)), model, change=moved), in_a_list)
    assert computed


@pytest.mark.parametrize("change", [None, moved])
def test_a_point_may_be_the_same_arrays_with_other_values_each_time(model, steps, computed, change):
    """As in PyMC's other processes, where it lies in shared memory."""
    in_a_list = chain_of(begun(CompoundStep(steps)), model, change=change)
    step, shared, found = begun(GibbsStep(steps)), model.initial_point(), []
    for k in range(TUNE + DRAWS):
        for name, value in {} if change is None else change(k, shared).items():
            shared[name][...] = value
        point, stats = step.step(shared)
        found.append((point, stats))
        for name, value in point.items():
            shared[name][...] = value
    assert same(found, in_a_list)
    assert max(computed) > 5


@pytest.mark.parametrize(
    "written",
    [
        lambda point: dict(reversed(point.items())),
        lambda point: {name: point[of] for name, of in zip("baxy", "abxy", strict=True)},
        lambda point: {name: point[of] for name, of in zip("abxy", "baxy", strict=True)},
        lambda point: {**point, "a": float(point["a"]), "x": point["x"].tolist()},
    ],
    ids=["in another order", "with other names in order", "with other names", "without arrays"],
)
def test_a_point_may_be_written_in_other_ways(alike, computed, written):
    model, steps = alike

    def change(k, point):
        return written(point) if k > TUNE and k % 5 == 3 else point

    in_a_list = chain_of(begun(CompoundStep(steps)), model, change=change)
    assert same(chain_of(begun(GibbsStep(steps)), model, change=change), in_a_list)
    assert max(computed) > 1


def test_a_block_that_goes_on_from_values_that_others_changed_would_show(model, steps, monkeypatch):
    """The twin of the test above takes any point for its own."""
    monkeypatch.setattr(gibbs._Block, "goes_on_from", lambda block, point: True)
    in_a_list = chain_of(begun(CompoundStep(steps)), model, change=moved)
    assert not same(chain_of(begun(GibbsStep(steps)), model, change=moved), in_a_list)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, LinAlgError])
def test_an_interrupt_loses_nothing(model, steps, expected, error, monkeypatch):
    """It comes after a block was computed, and before anything of it was handed out."""
    call, interrupted = Iterations.__call__, []

    def interrupt(self, *arguments):
        result = call(self, *arguments)
        if not interrupted:
            interrupted.append(True)
            raise error
        return result

    monkeypatch.setattr(Iterations, "__call__", interrupt)
    step, point, found = begun(GibbsStep(steps)), model.initial_point(), []
    while len(found) < TUNE + DRAWS:
        try:
            point, stats = step.step(point)
        except (KeyboardInterrupt, MemoryError):
            continue
        found.append((point, stats))
    assert interrupted
    assert same(found, expected)


@pytest.mark.parametrize("error", [None, SystemError])
@pytest.mark.parametrize("own", [False, True], ids=["Python's handler", "a handler of the user's"])
def test_an_interrupt_that_numba_would_lose_is_heeded(
    model, steps, expected, error, own, monkeypatch
):
    """It goes on, or raises another error."""
    step, lost, heeded = begun(GibbsStep(steps)), [], []
    made = Iterations.__init__

    def init(self, *arguments):
        made(self, *arguments)
        loop = self._loop

        def loses(*arguments):
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt:
                lost.append(True)
            if error is not None:
                raise error
            return loop(*arguments)

        self._loop = loses

    monkeypatch.setattr(Iterations, "__init__", init)
    before = signal.getsignal(signal.SIGINT)
    handler = (lambda *_: heeded.append(True)) if own else signal.default_int_handler
    signal.signal(signal.SIGINT, handler)
    try:
        if own:
            assert same(chain_of(step, model), expected)
            assert heeded
        else:
            with pytest.raises(KeyboardInterrupt):
                chain_of(step, model)
        assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert not lost


def test_it_is_copied_to_other_processes_as_it_is_at_a_draw(model, steps, expected):
    step = begun(GibbsStep(steps))
    [*_, (point, _)] = before = chain_of(step, model, TUNE + 5)
    copied = step.__getstate__()
    assert copied["_loops"] == {}
    assert copied["_block"] is None
    assert same(before + chain_of(step, model, TUNE + DRAWS - TUNE - 5, point), expected)


def test_a_single_step_has_the_generator_of_the_chain(model, steps):
    [records, *_] = steps
    alone = chain_of(begun(records), model)
    assert same(chain_of(begun(GibbsStep([records])), model), alone)


def test_a_step_of_somebody_else_is_called_in_each_iteration(model, steps, computed):
    own = FunctionStep([model["mu"]], lambda rng, point: {"mu": rng.normal()}, model=model)
    all_steps = [steps[0], own]
    in_a_list = chain_of(begun(CompoundStep(all_steps)), model)
    assert same(chain_of(begun(GibbsStep(all_steps)), model), in_a_list)
    assert computed == []


def test_points_with_many_values_are_not_copied_in_blocks(
    model, steps, expected, monkeypatch, computed
):
    monkeypatch.setattr(gibbs, "LARGEST_POINT", 50)
    assert same(chain_of(begun(GibbsStep(steps)), model), expected)
    assert computed == []


def test_a_loop_that_cannot_be_made_is_done_without(model, steps, expected, monkeypatch):
    tried = []

    def failing(self, *arguments):
        tried.append(True)
        raise NotImplementedError

    monkeypatch.setattr(Iterations, "__init__", failing)
    assert same(chain_of(begun(GibbsStep(steps)), model), expected)
    assert len(tried) == 1


@pytest.mark.parametrize("wrong", [[], None, "steps", [1]])
def test_what_is_no_list_of_steps_is_refused(wrong):
    with pytest.raises(TypeError, match="GibbsStep takes a list of steps"):
        GibbsStep(wrong)
