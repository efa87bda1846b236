"""Columns drawn anew are those by full evaluation, and leave the joint law as it is."""

import numpy as np
import pytest

from pymc_dapper.backend.in_python import in_python
from pymc_dapper.interweaving.kernels import columns
from tests.broken import edited
from tests.interweaving.kernels.test_boundaries import (
    LIMIT,
    RELEASED,
    SIZES,
    TABLES,
    N,
    drawn,
    log_joint,
    log_term,
    seen,
)
from tests.long_cases import one_in_three


def redrawn(p, people, released, uniforms):
    """People after the kernel."""
    people, cells = people.copy(), released[:, None]
    kernel = in_python(columns.redraw_columns)
    n_changed = kernel(log_term, cells, RELEASED, TABLES, people, p, uniforms)
    return people, n_changed


def by_full_evaluation(p, people, released, uniforms):
    """The same draws, from the joint density of everything at each category."""
    people, before, uniforms = people.copy(), people.copy(), iter(uniforms)
    for i in range(len(people)):
        for c, size in enumerate(SIZES):
            density = np.empty(size)
            for v in range(size):
                people[i, c] = v
                _, tabled, term = log_joint(p, people, released)
                density[v] = tabled.sum() + term
            weights = np.exp(density - density.max())
            limits = np.cumsum(weights) / weights.sum()
            people[i, c] = min(np.searchsorted(limits, next(uniforms), side="right"), size - 1)
    return people, (people != before).any(axis=1).sum()


def agree(n_cases):
    rng, same = np.random.default_rng(5), []
    for _ in range(n_cases):
        p, people, released = drawn(rng, 12)
        given = (p, people, released, rng.random(people.size))
        found, expected = redrawn(*given), by_full_evaluation(*given)
        same.append(np.array_equal(found[0], expected[0]))
        # Those who changed and came back aren't told apart from those who changed.
        assert not same[-1] or found[1] == expected[1]
    return all(same)


def z_scores(replicates):
    rng, changes = np.random.default_rng(1), []
    for _ in range(replicates):
        p, people, released = drawn(rng)
        after, _ = redrawn(p, people, released, rng.random(N * len(SIZES)))
        changes.append((seen(p, after, released) - seen(p, people, released))[2 * len(p) :])
    changes = np.array(changes)
    return changes.mean(axis=0) / changes.std(axis=0) * np.sqrt(replicates)


TWINS = {
    "without who comes": {
        "gain += log_term(total[after] + 1, context[after]) - terms[after]": "pass"
    },
    "without who leaves": {
        "gain += log_term(total[cell] - 1, context[cell]) - terms[cell]": "pass"
    },
    "without the columns that depend on it": {
        "gain = logs[own + step] + gain_of_children(tables, c, people[i], step, logs)": (
            "gain = logs[own + step]"
        )
    },
    "stale counts": {"total[k] += one": "pass"},
}


def test_draws_are_those_by_full_evaluation():
    assert agree(15)


def test_the_joint_law_stays():
    assert np.abs(z_scores(1_000)).max() < LIMIT


@pytest.mark.parametrize("fault", one_in_three(list(TWINS)))
def test_a_twin_draws_otherwise(fault):
    with edited(columns, "redraw_columns", TWINS[fault]):
        assert not agree(15)


# Of stale counts, in every run: draws by full evaluation (above).
@pytest.mark.parametrize(
    "fault", [x if k == 0 else pytest.param(x, marks=pytest.mark.long) for k, x in enumerate(TWINS)]
)
def test_a_twin_changes_the_joint_law(fault):
    with edited(columns, "redraw_columns", TWINS[fault]):
        assert np.abs(z_scores(1_000)).max() > LIMIT


def test_impossible_states_stay():
    p, people, released = drawn(np.random.default_rng(2))
    released[3] = np.inf
    same, n_changed = redrawn(p, people, released, np.full(people.size, 0.999))
    assert n_changed == 0
    np.testing.assert_array_equal(same, people)
