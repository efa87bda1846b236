"""A draw of weights leaves their conditional distribution as it is."""

from contextlib import contextmanager

import numpy as np
import pytest
from numba import njit
from scipy import stats

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.conjugacy.kernels import weights as kernels
from tests.broken import edited

N, SIZE = 24, 3
GROUP = np.arange(N) % 2
NEARLY = np.where(np.arange(N) == 0, 1, GROUP)
"""Groups of a third table: nearly the same."""
SHAPE, RATE = 1.5, 2.0
OFFSETS = np.array([12.0, 1.0, 1.0])
"""Most choose the first category."""
ROWS = np.array([0 * GROUP, 1 + GROUP, 3 + NEARLY])
ENDS = np.array([1, 3, 5])
M = 15
LOOKED_UP = np.concatenate([GROUP, NEARLY]), np.array([2, 2]), np.array([0, 1, 1])
"""By which entries look these rows up: indices, lengths, and numbers of axes."""


def probabilities(weights, offsets=OFFSETS):
    """Of each entry, by a table for all and two tables by group, shape (..., N, 3)."""
    rows = weights.reshape(*weights.shape[:-1], 5, 3)
    products = rows[..., :1, :] * rows[..., 1 + GROUP, :] * rows[..., 3 + NEARLY, :] * offsets
    return products / products.sum(axis=-1, keepdims=True)


def joint_draws(kernel, replicates=20_000, absent=0, offsets=OFFSETS):
    """Weights of the prior and choices by them; and the weights that a draw makes of these."""
    rng = np.random.default_rng(5)
    weights = rng.gamma(SHAPE, 1 / RATE, (replicates, M))
    above = rng.random((replicates, N, 1)) > np.cumsum(probabilities(weights, offsets), axis=-1)
    chosen = above.sum(axis=-1)
    prior = np.full(M, SHAPE), np.full(M, RATE)
    after = np.empty_like(weights)
    for own, x, new in zip(weights, chosen, after, strict=True):
        seen = np.where(np.arange(N) < N - absent, x, -1)
        kernel(rng, SIZE, new, own, *prior, seen, offsets.ravel(), *LOOKED_UP)
    return weights, chosen, after


def furthest(weights, chosen, after):
    """Largest z-score of paired differences, of functions of weights and choices."""
    n = chosen.shape[1]
    share = np.stack([(chosen == c).mean(axis=1) for c in range(SIZE)], axis=1)
    second = GROUP[:n] == 1
    in_second = np.stack([(chosen == c)[:, second].mean(axis=1) for c in range(SIZE)], axis=1)

    def functions(w):
        log = np.log(w)
        p = probabilities(w)[:, :3].reshape(len(w), -1)
        both = (log[:, :3] + log[:, 6:9]) * in_second
        parts = [w, log, log**2, p, share * log[:, :3], both, both**2, log[:, :3] * log[:, 6:9]]
        product = log[:, :3] + log[:, 6:9] + log[:, 12:]
        parts += [
            log[:, 6:9] * log[:, 9:12],
            log[:, 6:9] * log[:, 12:],
            product,
            product**2,
            product * share,
            p**2,
        ]
        return np.concatenate(parts, axis=1)

    difference = functions(after) - functions(weights)
    difference = difference[:, difference.any(axis=0)]
    return np.abs(difference.mean(0) / (difference.std(0) / np.sqrt(len(weights)))).max()


def found_in_python(kernel, *arguments):
    """What a kernel returns. Its hashes may overflow, as they do where it is compiled."""
    with np.errstate(over="ignore"):
        return in_python(kernel)(*arguments)


def few_draws(replicates, **options):
    """In Python, where much fewer than compiled take a tenth of the time that compiling takes."""
    with np.errstate(over="ignore"):
        return joint_draws(in_python(kernels.draw_weights), replicates, **options)


def test_a_draw_leaves_weights_and_choices_distributed_as_they_are():
    assert furthest(*few_draws(300)) < 4.5
    with edited(kernels, *WITHOUT_THE_SUM):
        assert furthest(*few_draws(300)) > 9


@pytest.mark.long
def test_so_does_a_compiled_draw():
    assert furthest(*joint_draws(kernels.draw_weights)) < 4.5


@pytest.mark.long
def test_entries_with_offsets_of_their_own_are_drawn_one_by_one():
    offsets = np.where(np.arange(N)[:, None] < N // 2, OFFSETS, OFFSETS[::-1])
    assert furthest(*joint_draws(kernels.draw_weights, offsets=offsets)) < 4.5
    right = "len(offsets) > size))"
    line = f"numbers, first = numbered(kinds(chosen, of_entries, ends, size, {right}"
    with broken("draw_weights", line, line.replace(right, "False))")) as kernel:
        assert furthest(*joint_draws(kernel, offsets=offsets)) > 6


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


def redrawn_factors(redrawn, shape=2.5, b=2.0, n=1_000_000):
    """z-scores of moments of logarithms of generalised inverse Gaussians that were redrawn."""
    rng = np.random.default_rng(4)
    x = stats.geninvgauss.rvs(shape, b, size=n, random_state=rng)

    @njit
    def all_redrawn(x, normals, uniforms):
        new = np.empty_like(x)
        for i in range(len(x)):
            more, less = b / 2 * x[i], b / 2 / x[i]
            new[i] = x[i] * redrawn(shape, more, less, np.inf, normals[i], uniforms[i])
        return new

    new = all_redrawn(x, rng.normal(size=n), rng.random(n))
    assert (new != x).mean() > 0.5
    difference = np.stack([np.log(new) ** k - np.log(x) ** k for k in (1, 2, 3)])
    return np.abs(difference.mean(axis=1) / difference.std(axis=1) * np.sqrt(n)).max()


def test_redrawn_factors_are_generalised_inverse_gaussians():
    assert redrawn_factors(kernels.redrawn) < 4.5
    right = "return np.exp(y) if np.log(uniform) < gain else 1.0"
    with broken("redrawn", right, "return np.exp(y)"):
        assert redrawn_factors(kernels.redrawn) > 6


WITHOUT_THE_SUM = (
    "draw_row",
    {
        "shape, rate = shapes[j] + counts[j], rates[j] + column_total(exposures, c) / old": (
            "shape, rate = shapes[j] + counts[j], rates[j]"
        )
    },
)

TWINS = {
    "rows are multiplied by what they are worth": (
        "rescale",
        "factor = standard_gamma(rng, shape) / rate",
        "factor = standard_gamma(rng, shape + 1) / rate",
    ),
    "what one table gains another doesn't lose": (
        "exchange",
        "weights[j + c] = max(weights[j + c] * np.exp(-by), TINY)",
        "pass",
    ),
    "moves between tables are always made": (
        "exchange",
        "if np.log(uniforms[c]) < gain:",
        "if True:",
    ),
    "who looks up one of both rows has no say": (
        "exchange",
        "gain += times[k] * (signs[k] * by * (choices[k] == c) - np.log1p(more))",
        "gain += 0.0",
    ),
    "of equal entries, one has a say": (
        "exchange",
        "gain += times[k] * (signs[k] * by * (choices[k] == c) - np.log1p(more))",
        "gain += signs[k] * by * (choices[k] == c) - np.log1p(more)",
    ),
    "rates are those of the prior": (
        "draw_row",
        "shape, rate = shapes[j] + counts[j], rates[j] + column_total(exposures, c) / old",
        "shape, rate = shapes[j] + counts[j], rates[j]",
    ),
    "a factor moves what others see the wrong way": (
        "draw_row",
        "scale_column(exposures.T, c, 1 / by)",
        "scale_column(exposures.T, c, by)",
    ),
    "exponential variables stay as they are": (
        "draw_weights",
        "per_total[k] /= factors[before[k] * size + choices[k]]",
        "pass",
    ),
    "all have chosen the first": (
        "draw_weights",
        "counts[own[k] * size + choices[k]] += times[k]",
        "counts[own[k] * size] += times[k]",
    ),
    "the sum forgets a category": (
        "draw_weights",
        "per_total[k] = standard_gamma(rng, times[k]) / products[k].sum()",
        "per_total[k] = standard_gamma(rng, times[k]) / products[k, :-1].sum()",
    ),
    "products are those before the draw": (
        "draw_weights",
        "changes[j] = out[j] / old[j - first_of]",
        "changes[j] = weights[j] / old[j - first_of]",
    ),
    "of equal entries, one is counted": (
        "draw_weights",
        "counts[own[k] * size + choices[k]] += times[k]",
        "counts[own[k] * size + choices[k]] += 1",
    ),
    "of equal entries, one has an exponential variable": (
        "draw_weights",
        "per_total[k] = standard_gamma(rng, times[k]) / products[k].sum()",
        "per_total[k] = standard_gamma(rng, 1.0) / products[k].sum()",
    ),
}


@contextmanager
def broken(name, line, other):
    """The kernel with a fault, compiled."""
    with edited(kernels, name, {line: other}), pytest.MonkeyPatch.context() as patch:
        if name == "exchange":
            yield exchanging(kernels.exchange)
            return
        # Exchanges add noise to what shows the faults of draws.
        patch.setattr(kernels, "exchange_all", njit(lambda *_: None))
        yield njit(kernels.draw_weights.py_func)


def exchanging(exchange):
    """A draw that exchanges factors between rows that different entries look up."""
    of_row, of_others = GROUP == 1, NEARLY == 0
    apart = np.flatnonzero(of_row != of_others)
    signs = np.where(of_row, 1.0, -1.0)

    def draw(rng, size, out, weights, shapes, rates, chosen, *given):
        out[:] = weights
        keys = SIZE * (signs[apart] > 0) + chosen[apart]
        _, first, times = np.unique(keys, return_index=True, return_counts=True)
        one = apart[first]  # of each kind
        products = OFFSETS * np.prod(weights.reshape(-1, SIZE)[ROWS[:, one]], axis=0)
        of_kinds = products, chosen[one], times.astype(float), signs[one]
        exchange(rng, out, 6, np.array([9]), shapes, rates, *of_kinds)

    return draw


@pytest.mark.long
def test_exchanged_factors_leave_weights_and_choices_distributed_as_they_are():
    assert furthest(*joint_draws(exchanging(kernels.exchange))) < 4.5


def exchanged(monkeypatch, third):
    """Between which rows factors are exchanged, and signs by the times of entries of one only."""
    found = {}

    def note(rng, weights, row, others, *given):
        found[row, tuple(others)] = dict(zip(*given[-2:], strict=True))

    monkeypatch.setattr(kernels, "exchange", note)
    n = N - 1
    rows = np.array([0 * GROUP, 1 + GROUP, 3 + third])[:, :n]
    of_entries = np.ones((n, SIZE)), np.zeros(n, int), np.arange(1.0, N), rows, rows
    kernels.exchange_all.py_func(
        np.random.default_rng(1), np.ones(M), ENDS, np.ones(M), np.ones(M), *of_entries
    )
    return found


OF_ALL = {(0, (3, 6)): {}, (0, (9, 12)): {}}


def test_factors_are_exchanged_between_rows_of_nearly_the_same_entries(monkeypatch):
    found = exchanged(monkeypatch, NEARLY)
    one_way = {(3, (9,)): {1: 1}, (12, (6,)): {1: 1}}
    other_way = {(9, (3,)): {1: -1}, (6, (12,)): {1: -1}}
    assert found == OF_ALL | one_way | other_way


def test_a_row_of_nearly_all_exchanges_no_factors(monkeypatch):
    """All that differ from it look up one of the rows only."""
    assert exchanged(monkeypatch, (np.arange(N) == 0).astype(int)) == OF_ALL


@pytest.mark.long
@pytest.mark.parametrize("fault", TWINS)
def test_a_broken_draw_is_found(fault):
    with broken(*TWINS[fault]) as kernel:
        assert furthest(*joint_draws(kernel)) > 6


def test_absent_entries_are_left_out():
    weights, chosen, after = few_draws(2_000, absent=N - 4)
    assert furthest(weights, chosen[:, :4], after) < 4.5
    # Of the others nothing is known.
    assert furthest(weights, chosen, after) > 6


def with_a_weight(kernel, tiny):
    """Draw where a category that nobody chose has hardly any weight."""
    weights, offsets, out = np.ones(M), np.ones(SIZE), np.empty(M)
    weights[4], offsets[1] = tiny, 1e-20
    prior = np.ones(M), np.full(M, 1e-30)
    rng, chosen = np.random.default_rng(2), np.zeros(N, int)
    kernel(rng, SIZE, out, weights, *prior, chosen, offsets, *LOOKED_UP)
    return out


@pytest.mark.long
def test_a_tiny_weight_is_drawn_from_what_others_are():
    """Products with it have lost their digits."""
    expected = with_a_weight(kernels.draw_weights, 1e-60)
    np.testing.assert_allclose(with_a_weight(kernels.draw_weights, 1e-300), expected, rtol=1e-9)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "TOO_SMALL", 0.0)
        kernel = njit(kernels.draw_weights.py_func)
        assert not np.allclose(with_a_weight(kernel, 1e-300), expected, rtol=1e-7)


def test_equal_keys_have_one_number():
    keys = np.random.default_rng(1).integers(-3, 40, 300) * 2**40
    numbers, first = found_in_python(kernels.numbered, keys)
    assert (keys < 0).any()
    assert (numbers[keys < 0] == -1).all()
    present, of_present = keys[keys >= 0], numbers[keys >= 0]
    distinct, expected = np.unique(present, return_index=True)
    assert len(first) == len(distinct)
    assert np.array_equal(keys[first][of_present], present)
    assert np.array_equal(np.sort(first), np.sort(np.flatnonzero(keys >= 0)[expected]))


def test_only_entries_of_the_same_rows_and_choice_have_the_same_key():
    rng = np.random.default_rng(1)
    chosen, rows = (
        rng.integers(-1, SIZE, 500),
        np.array([[0], [1], [4]])
        + np.array([np.zeros(500, int), rng.integers(0, 3, 500), rng.integers(0, 4, 500)]),
    )
    keys = found_in_python(kernels.kinds, chosen, rows, np.array([1, 4, 8]), SIZE, False)
    assert np.array_equal(keys < 0, chosen < 0)
    told = np.column_stack([chosen, *rows])[chosen >= 0]
    assert len(np.unique(keys[chosen >= 0])) == len(np.unique(told, axis=0))


def test_entries_of_too_many_kinds_are_taken_one_by_one():
    """Their number would not fit into 64 bits."""
    rows = 2 * np.arange(70)[:, None] + np.zeros((1, 4), int)
    chosen = np.array([0, 0, -1, 1])
    keys = found_in_python(kernels.kinds, chosen, rows, 2 * np.arange(1, 71), 2, False)
    assert keys.tolist() == [0, 1, -1, 3]
