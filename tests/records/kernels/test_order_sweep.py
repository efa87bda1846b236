"""Decisions by order statistics that are kept up to date are those by sorting all records anew."""

import numpy as np
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.records.kernels import order_sweep
from pymc_dapper.records.kernels.sums_sweep import no_sums
from tests.broken import in_place

rng = np.random.default_rng(1)
NORMAL = rng.normal(size=(2, 150))
# Present records, proposals, and the released median of the records.
CASES = {
    "numbers": (*NORMAL, 0.1),
    "ties": (*np.round(NORMAL), 0.0),
    "all alike, far away": (np.zeros(150), NORMAL[0] + 9.0, 9.0),
    "to and fro": (*np.sort(NORMAL, axis=1), 0.5),
    "among infinite ones": (*np.where(NORMAL > 1, np.inf, NORMAL), 0.5),
    "two records": (*NORMAL[:, :2], 0.1),
    "one record": (np.ones(1), np.zeros(1), 0.1),
}
CASE = pytest.mark.parametrize("case", CASES)


def log_density(state, inputs):
    """Of a sum, the median, a quartile, and the range: the largest record and minus the least."""
    total, median, quartile, largest, least = state
    released = (3.0, inputs[0], inputs[0] - 0.7)
    gaps = np.array([total / 10, median, quartile]) - released
    with np.errstate(invalid="ignore"):
        return -np.abs(gaps).sum() / 0.2 - 0.1 * (largest + least)


def of_all(x, counted, released):
    ranks = np.sort(x)
    state = [counted.sum(), ranks[len(x) // 2], ranks[len(x) // 4], ranks[-1], -ranks[0]]
    return log_density(state, [released])


def plain(x, y, released, log_uniforms):
    """Each decision by sorting all records."""
    x, accepted = x.copy(), []
    now = of_all(x, x > 0, released)
    for i, log_uniform in enumerate(log_uniforms):
        old, x[i] = x[i], y[i]
        new = of_all(x, x > 0, released)
        gain = order_sweep.log_gain.py_func(now, new)
        accepted.append(log_uniform < gain)
        x[i] = y[i] if accepted[i] else old
        now = new if accepted[i] else now
    return np.array(accepted), now


def both(case, fewest=1):
    """Decide in two blocks, with short lists of the numbers around each order statistic."""
    x, y, released = CASES[case]
    n = len(x)
    log_uniforms = np.log(np.random.default_rng(2).random(n))
    ranks = np.array([[0, n // 2], [0, n // 4], [0, n - 1], [1, n - 1]])
    accepted = np.zeros(n, dtype=bool)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order_sweep, "FEWEST", fewest)
        orders = in_python(order_sweep.orders_of)(np.stack([x, -x]), np.stack([y, -y]), ranks)
        decide, sums = in_python(order_sweep.decide_by_order), no_sums.py_func(1)
        sums.total[0] = np.sum(x > 0)
        for start, stop in ((0, n // 2), (n // 2, n)):
            counted = (1.0 * (each[start:stop, None] > 0) for each in (x, y))
            deciding = (start, log_uniforms, accepted)
            found = decide(log_density, ([released], orders), sums, *counted, 1, *deciding)
    return (accepted, found), plain(x, y, released, log_uniforms)


@CASE
@pytest.mark.parametrize("fewest", [1, 16])
def test_decisions_are_those_by_sorting(case, fewest):
    (accepted, now), (expected, log_expected) = both(case, fewest)
    np.testing.assert_array_equal(accepted, expected)
    np.testing.assert_allclose(now, log_expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("fault", "case"),
    [
        ({"look(orders, q)": "pass"}, "all alike, far away"),
        ({"between(near, place, three, rank, q)": "pass"}, "numbers"),
        ({"values[c, i] = proposed[c, i]": "pass"}, "all alike, far away"),
        ({"low = present if a < present else three[q, 0]": "low = three[q, 0]"}, "numbers"),
        ({"high = present if a > present else three[q, 2]": "high = three[q, 2]"}, "numbers"),
        ({"low = present if a < present else three[q, 0]": "low = present"}, "one record"),
        ({"place[q, 0] += int(b < low) - int(a < low)": "pass"}, "numbers"),
        ({"place[q, 1] = size": "pass"}, "numbers"),
        ({"if low <= b <= high and size == near.shape[1]:": "if False:"}, "all alike, far away"),
    ],
)  # fmt: skip
def test_a_broken_sweep_is_detected(fault, case):
    try:
        with in_place(fault), np.errstate(all="ignore"):
            (accepted, now), (expected, log_expected) = both(case)
    except IndexError:
        return  # beyond the list
    assert not np.array_equal(accepted, expected) or abs(now - log_expected) > 1e-6
