"""Laws of a published whole number: rows, sums between two values, and draws."""

import numpy as np
import pytensor.tensor as pt
import pytest

from pymc_dapper.mechanisms.count_law import MOST_ENTRIES, law_of_function, read_law

RNG = np.random.default_rng(5)
ROWS = RNG.dirichlet(np.full(5, 0.5), size=7)
ROWS[:, 2] = 0.0  # a value that is never published
ROWS /= ROWS.sum(axis=1, keepdims=True)
LAWS = {
    "published": read_law(ROWS, published=[0, 10, 2, 4, 7]),
    "differences": read_law(ROWS, differences=[-1, 0, 2, 3, -2]),
    "repeated": read_law(ROWS, differences=[-1, 0, 2, 3, -2], repeats=3),
}
VALUES = {"published": [0, 10, 2, 4, 7], "differences": [-1, 0, 2, 3, -2]}
COUNTS = np.arange(-2, 20)


def by_hand(kind, count):
    """Probabilities by published value, from the rows as they were given."""
    row = count
    if kind == "repeated" and count > 6:
        row = 4 + (count - 7) % 3
    if not 0 <= row <= 6:
        return {}
    shift, values = (0, "published") if kind == "published" else (count, "differences")
    return {v + shift: p for v, p in zip(VALUES[values], ROWS[row], strict=True)}


@pytest.mark.parametrize("kind", LAWS)
def test_each_value_has_its_probability(kind):
    values = np.arange(-5, 30)
    log_p = LAWS[kind].log_at(values, COUNTS[:, None])
    expected = np.array([[by_hand(kind, n).get(v, 0.0) for v in values] for n in COUNTS])
    np.testing.assert_allclose(np.exp(log_p), expected, rtol=1e-13)
    released, count = pt.lvector("r"), pt.lcol("n")
    in_model = LAWS[kind].log_at(released, count)
    at = in_model.eval({released: values, count: COUNTS[:, None]}, mode="FAST_COMPILE")
    np.testing.assert_array_equal(at, log_p)


@pytest.mark.parametrize("kind", LAWS)
def test_values_between_two_ends_have_the_sum_of_their_probabilities(kind):
    low, high = (x.ravel() for x in np.mgrid[-4:12, -4:14])
    for below, above in ((False, False), (True, False), (False, True)):
        log_p = LAWS[kind].log_between(low, high, below, above, COUNTS[:, None])
        for n, row in zip(COUNTS, log_p, strict=True):
            law = by_hand(kind, n)
            expected = [
                sum(p for v, p in law.items() if (below or v >= a) and (above or v <= b))
                for a, b in zip(low, high, strict=True)
            ]
            np.testing.assert_allclose(np.exp(row), expected, rtol=1e-12)
            np.testing.assert_array_equal(np.isfinite(row), np.array(expected) > 0)


def test_small_probabilities_keep_their_digits():
    p = np.array([[1e-30, 1.0, 3e-25, 2e-30]])
    law = read_law(p / p.sum(), published=[0, 1, 2, 3])
    ends = np.array([0, 2, 3]), np.array([0, 3, 3])
    log_p = law.log_between(*ends, False, False, np.zeros(3, dtype=int))
    np.testing.assert_allclose(np.exp(log_p), [1e-30, 3.00002e-25, 2e-30], rtol=1e-12)


@pytest.mark.parametrize("kind", LAWS)
def test_draws_follow_the_probabilities(kind):
    n_draws = 4000
    law, rng = LAWS[kind], np.random.default_rng(1)
    for n in (0, 3, 6, *([8, 100] if kind == "repeated" else [])):
        drawn = law.draw(np.full(n_draws, n), rng)
        for value, p in by_hand(kind, n).items():
            share = np.mean(drawn == value)
            assert abs(share - p) <= 5 * np.sqrt(p * (1 - p) / n_draws)
            if p > 0.3:  # a law that is broken
                assert abs(share - 0.7 * p) > 5 * np.sqrt(p * (1 - p) / n_draws)


def test_a_band_of_a_matrix_takes_a_few_columns():
    n = 600
    matrix = 0.5 * (np.eye(n, n + 1) + np.eye(n, n + 1, 1))
    law = read_law(matrix)
    assert law.probabilities.shape == (n, 2)
    assert not law.open_ended
    values = np.arange(n + 1)
    np.testing.assert_array_equal(np.exp(law.log_at(values, np.arange(n)[:, None])), matrix)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"probabilities": [[0.5, 0.5], [0.2, 0.7]]}, r"those of 1 add up to 0.9"),
        ({"probabilities": [[1.5, -0.5]]}, r"from 0 to 1, but those of true count 0"),
        ({"probabilities": [0.5, 0.5]}, "must be a matrix"),
        ({"probabilities": [[1.0]], "published": [1, 2]}, r"published must have shape \(1,\)"),
        ({"probabilities": [[1.0]], "published": [0.5]}, "whole numbers"),
        ({"probabilities": [[0.5, 0.5]], "published": [1, 1]}, "different"),
        ({"probabilities": [[1.0]], "published": [1], "differences": [1]}, "one of both"),
        ({"probabilities": [[1.0]], "repeats": 1}, "use differences="),
        ({"probabilities": [[1.0]], "differences": [0], "repeats": 2}, "at most the number"),
        (
            {"probabilities": [[0.5, 0.5]] * 5, "published": [0, MOST_ENTRIES]},
            "more than 100,000",
        ),
    ],
)
def test_what_is_no_law_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        read_law(**arguments)


def test_a_function_is_tabulated():
    p, values = law_of_function(lambda n: {n: 0.25, 2 * n + 1: 0.75}, 2)
    np.testing.assert_array_equal(values, [0, 1, 2, 3, 5])
    np.testing.assert_array_equal(
        p, [[0.25, 0.75, 0, 0, 0], [0, 0.25, 0, 0.75, 0], [0, 0, 0.25, 0, 0.75]]
    )
    with pytest.raises(ValueError, match=r"what law\(0\) returns must be finite"):
        law_of_function(lambda n: {n: 1.0, n + 1: np.nan}, 2)
    with pytest.raises(TypeError, match=r"law\(1\) must return a dict .*, got None"):
        law_of_function(lambda n: None if n else {0: 1.0}, 2)


def test_which_counts_can_have_led_to_a_value():
    law = LAWS["repeated"]
    for value in (0, 5, 30):
        can = {n for n in range(60) if by_hand("repeated", n).get(value, 0.0) > 0}
        assert can <= set(law.counts_behind(value, value))
    assert not law.may_be_beyond(100)
    differences = LAWS["differences"]
    assert not differences.may_be_beyond(4)
    assert differences.may_be_beyond(5)  # 7 - 2
    assert not LAWS["published"].may_be_beyond(10)
