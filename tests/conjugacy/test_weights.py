"""Weights of categories: the draw leaves their conditional as it is; which models have it."""

from contextlib import contextmanager

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from numba import njit

import pymc_dapper as pmd
from pymc_dapper.conjugacy import kernels
from pymc_dapper.conjugacy.step import ConjugateStep
from pymc_dapper.conjugacy.weights import WEIGHTS, categories_of
from pymc_dapper.graphs.errors import NotConjugateError
from pymc_dapper.graphs.evaluation import compile_in_python
from tests.broken import edited
from tests.conjugacy.judge import Judge

N, SIZE = 24, 3
GROUP = np.arange(N) % 2
SHAPE, RATE = 1.5, 2.0
PLACES = np.concatenate([np.zeros(N), SIZE * (1 + GROUP)])
ENDS = np.array([3.0, 9.0])


def probabilities(weights):
    """Of each entry, by a table for all and a table by group, shape (..., N, 3)."""
    products = weights[..., None, :3] * weights[..., 3:].reshape(*weights.shape[:-1], 2, 3)
    return (products / products.sum(axis=-1, keepdims=True))[..., GROUP, :]


def joint_draws(kernel, replicates=20_000, absent=0):
    """Weights of the prior and choices by them; and the weights that a draw makes of these."""
    rng = np.random.default_rng(5)
    weights = rng.gamma(SHAPE, 1 / RATE, (replicates, 9))
    above = rng.random((replicates, N, 1)) > np.cumsum(probabilities(weights), axis=-1)
    chosen = above.sum(axis=-1)
    offsets = np.ones(N * SIZE)
    prior = np.full(9, SHAPE), np.full(9, RATE)
    after = np.empty_like(weights)
    for own, x, new in zip(weights, chosen, after, strict=True):
        seen = np.where(np.arange(N) < N - absent, x, -1.0)
        kernel(rng, SIZE, new, own, ENDS, *prior, seen, PLACES, offsets)
    return weights, chosen, after


def furthest(weights, chosen, after):
    """Largest z-score of paired differences, of functions of weights and choices."""
    n = chosen.shape[1]
    share = np.stack([(chosen == c).mean(axis=1) for c in range(SIZE)], axis=1)
    second = GROUP[:n] == 1
    in_second = np.stack([(chosen == c)[:, second].mean(axis=1) for c in range(SIZE)], axis=1)

    def functions(w):
        log = np.log(w)
        p = probabilities(w)[:, :2].reshape(len(w), -1)
        both = (log[:, :3] + log[:, 6:]) * in_second
        parts = [w, log, log**2, p, share * log[:, :3], both, both**2, log[:, :3] * log[:, 6:]]
        return np.concatenate(parts, axis=1)

    difference = functions(after) - functions(weights)
    return np.abs(difference.mean(0) / (difference.std(0) / np.sqrt(len(weights)))).max()


def test_a_draw_leaves_weights_and_choices_distributed_as_they_are():
    assert furthest(*joint_draws(kernels.draw_weights)) < 4.5


def mirrored_gammas(mirrored, shape=0.8, n=1_000_000):
    """z-scores of moments of logarithms of gammas that were mirrored."""
    rng = np.random.default_rng(3)

    @njit
    def all_mirrored(y, uniforms):
        new = np.empty(len(y))
        for i in range(len(y)):
            new[i] = mirrored(y[i], shape, uniforms[i])
        return new

    y = rng.gamma(shape, size=n)
    new = all_mirrored(y, rng.random(n))
    assert np.corrcoef(y, new)[0, 1] < 0
    difference = np.stack([f(new) - f(y) for f in (np.sqrt, np.log, lambda x: np.log(x) ** 2)])
    return np.abs(difference.mean(1) / difference.std(1) * np.sqrt(n)).max()


def test_mirrored_gammas_are_gammas():
    assert mirrored_gammas(kernels.mirrored) < 4.5
    with broken("mirrored", "return new if np.log(uniform) < gain else y", "return new"):
        assert mirrored_gammas(kernels.mirrored) > 6


TWINS = {
    "rows are multiplied by what they are worth": (
        "rescale",
        "factor = standard_gamma(rng, shape) / rate",
        "factor = standard_gamma(rng, shape + 1) / rate",
    ),
    "what one table gains another doesn't lose": (
        "rescale",
        "weights[j] = max(weights[j] * np.exp(-by), TINY)",
        "pass",
    ),
    "moves between tables are always made": (
        "rescale",
        "if np.log(uniforms[t * size + c]) < gain:",
        "if True:",
    ),
    "rates are those of the prior": (
        "draw_weights",
        "shape, rate = shapes[j] + counts[j], rates[j] + exposures[j]",
        "shape, rate = shapes[j] + counts[j], rates[j]",
    ),
    "all have chosen the first": (
        "draw_weights",
        "counts[int(places[j]) + int(chosen[j % n])] += 1",
        "counts[int(places[j])] += 1",
    ),
    "the sum forgets a category": (
        "draw_weights",
        "per_total[i] = per_total[i] / products[i * size : (i + 1) * size].sum()",
        "per_total[i] = per_total[i] / products[i * size : (i + 1) * size - 1].sum()",
    ),
    "products are those before the draw": (
        "draw_weights",
        "multiply_by(products, out * without, own, size)",
        "multiply_by(products, weights * without, own, size)",
    ),
}


@contextmanager
def broken(name, line, other):
    """The kernel with a fault, compiled."""
    with edited(kernels, name, {line: other}):
        yield njit(kernels.draw_weights.py_func)


IN_EVERY_RUN = "rates are those of the prior", "moves between tables are always made"
"""Each is compiled: of what is drawn and of what is moved, one."""


@pytest.mark.parametrize(
    "fault", [pytest.param(x, marks=[] if x in IN_EVERY_RUN else pytest.mark.long) for x in TWINS]
)
def test_a_broken_draw_is_found(fault):
    with broken(*TWINS[fault]) as kernel:
        assert furthest(*joint_draws(kernel)) > 6


def test_absent_entries_are_left_out():
    weights, chosen, after = joint_draws(kernels.draw_weights, absent=N - 4)
    assert furthest(weights, chosen[:, :4], after) < 4.5
    # Of the others nothing is known.
    assert furthest(weights, chosen, after) > 6


def with_a_weight(kernel, tiny):
    """Draw where a category that nobody chose has hardly any weight."""
    weights, offsets, out = np.ones(9), np.ones((N, SIZE)), np.empty(9)
    weights[4], offsets[:, 1] = tiny, 1e-20
    prior = np.ones(9), np.full(9, 1e-30)
    rng, chosen = np.random.default_rng(2), np.zeros(N)
    kernel(rng, SIZE, out, weights, ENDS, *prior, chosen, PLACES, offsets.ravel())
    return out


def test_a_tiny_weight_is_drawn_from_what_others_are():
    """Products with it have lost their digits."""
    expected = with_a_weight(kernels.draw_weights, 1e-60)
    np.testing.assert_allclose(with_a_weight(kernels.draw_weights, 1e-300), expected, rtol=1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "TOO_SMALL", 0.0)
        patch.setattr(kernels, "leave_out", njit(kernels.leave_out.py_func))
        kernel = njit(kernels.draw_weights.py_func)
        assert not np.allclose(with_a_weight(kernel, 1e-300), expected, rtol=1e-7)


def test_a_row_that_is_not_there_is_refused():
    for place in (-1.0, 7.0):
        places = np.full(2 * N, place)
        with pytest.raises(IndexError, match="isn't there"):
            kernels.draw_weights(
                np.random.default_rng(1), SIZE, np.empty(9), np.ones(9), ENDS, np.ones(9),
                np.ones(9), np.zeros(N), places, np.ones(N * SIZE),
            )  # fmt: skip


OBSERVED = np.array([0, 2, 1, 1, 0, 2, 2, 2])
BY_ROW = np.array([0, 1, 1, 0, -1, -2, 0, 1])


def one_table():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    pm.Categorical("x", w / w.sum(), observed=OBSERVED)


def several_tables():
    w, v = pm.Exponential("w", 2.0, shape=3), pm.Gamma("v", [1.0, 2.0, 3.0], 1.0, shape=(2, 3))
    u = pm.Gamma("u", 2.0, 1.0, shape=(2, 2, 3))
    products = w * v[BY_ROW] * u[BY_ROW, OBSERVED % 2]
    pm.Categorical("x", products / products.sum(axis=1, keepdims=True), observed=OBSERVED)


def with_offsets():
    v, beta = pm.Gamma("v", 1.0, 1.0, shape=(2, 3)), pm.Normal("beta", shape=3)
    products = pt.exp(beta) * v[BY_ROW] * np.arange(1.0, 25).reshape(8, 3)
    pm.Categorical("x", products / products.sum(axis=-1)[:, None], observed=OBSERVED)


def in_two_variables():
    for name in "xy":
        w = pm.Gamma(f"w_{name}", 2.0, 3.0, dims="category")
        pm.Categorical(name, w / w.sum(), observed=OBSERVED)


READ = [one_table, several_tables, with_offsets, in_two_variables]


@pytest.mark.parametrize("write", READ)
def test_the_conditional_is_that_of_the_model(write):
    with pm.Model(coords={"category": range(3)}) as model:
        write()
    rvs = [x for x in model.free_RVs if categories_of(model, x)]
    step, judge = ConjugateStep(rvs, model=model), Judge(model)
    rng, point = np.random.default_rng(1), model.initial_point()
    for conditional in step._conditionals:
        [x] = conditional.children
        assert conditional.family is WEIGHTS
        assert all(categories_of(model, rv) == {x} for rv in conditional.rvs)
        names = [model.rvs_to_values[rv].name for rv in conditional.rvs]
        given = [point[v.name] for v in conditional.given]
        parameters = compile_in_python(model, conditional.given, conditional.parameters)(*given)
        found, expected = [], []
        for _ in range(2):
            drawn = rng.gamma(2.0, size=sum(map(np.prod, conditional.shapes)))
            each = conditional.split(drawn)
            logs = {name: np.log(w) for name, w in zip(names, each, strict=True)}
            expected.append(judge({**point, **logs}))
            found.append(WEIGHTS.log_density(drawn, *parameters))
        assert found[1] - found[0] == pytest.approx(expected[1] - expected[0], rel=1e-9)


def twice():
    w = pm.Gamma("w", 2.0, 3.0, shape=(2, 3))
    products = w[BY_ROW] * w[1 - BY_ROW % 2]
    pm.Categorical("x", products / products.sum(axis=1, keepdims=True), observed=OBSERVED)


def another_sum():
    w, v = pm.Gamma("w", 2.0, 3.0, shape=3), pm.Gamma("v", 2.0, 3.0, shape=3)
    pm.Categorical("x", w / (w + v).sum() + v / (w + v).sum(), observed=OBSERVED)


def a_power():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    pm.Categorical("x", w**2 / (w**2).sum(), observed=OBSERVED)


def seen_elsewhere():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    pm.Categorical("x", w / w.sum(), observed=OBSERVED)
    pm.Poisson("y", w, observed=[1, 2, 3])


def a_single_choice():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    pm.Categorical("x", w / w.sum(), observed=1)


def a_matrix():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    pm.Categorical("x", w / w.sum(), observed=OBSERVED.reshape(4, 2))


def one_above_another():
    w = pm.Gamma("w", 2.0, 3.0, shape=3)
    v = pm.Gamma("v", 2.0, w, shape=3)
    pm.Categorical("x", w * v / (w * v).sum(), observed=OBSERVED)


OTHERWISE = [
    twice,
    another_sum,
    a_power,
    seen_elsewhere,
    a_single_choice,
    a_matrix,
    one_above_another,
]


@pytest.mark.parametrize("write", OTHERWISE)
def test_other_forms_are_refused(write):
    with pm.Model() as model:
        write()
    with pytest.raises(
        NotConjugateError,
        match=r"isn't a product of tables|not only the|isn't a vector|depends on another",
    ):
        ConjugateStep(model.free_RVs, model=model)


def test_weights_of_people_behind_a_release_are_drawn_from_their_conditional():
    with pm.Model():
        w, v = pm.Exponential("w", 1.0, shape=2), pm.Exponential("v", 1.0, shape=(2, 2))
        a = pm.Categorical("a", w / w.sum(), shape=30)
        b = pm.Categorical("b", v[a] / v[a].sum(axis=1, keepdims=True), shape=30)
        noise = pmd.GaussianMechanism(2.0)
        noise.potential(
            "table", pmd.statistics.joint_counts([a, b], [2, 2]), released=np.full((2, 2), 7.5)
        )
        steps = pmd.assign_steps([a, b], progressbar=False)
    assert [type(x).__name__ for x in steps] == ["DapperStep", *["ConjugateStep"] * 2]


def test_other_probabilities_of_gammas_move_together_with_people():
    """They go to NUTS, and InterweaveStep moves them, too."""
    with pm.Model():
        w = pm.Gamma("w", 2.0, 1.0, shape=2)
        a = pm.Categorical("a", w**2 / (w**2).sum(), shape=30)
        counted = pmd.statistics.counts(a, 2)
        pmd.GaussianMechanism(2.0).potential("table", counted, released=np.full(2, 15.0))
        steps = pmd.assign_steps([a], progressbar=False)
    assert [type(x).__name__ for x in steps] == ["DapperStep", "NUTS", "InterweaveStep"]
