"""Moves keep what is known, and connect all tables."""

from dataclasses import replace
from itertools import product

import numpy as np
import pymc as pm
import pytest
from scipy import sparse

from pymc_dapper import ReadingError
from pymc_dapper.counts.reading.invariant import invariant
from pymc_dapper.counts.reading.moves import find_moves
from pymc_dapper.counts.reading.totals import find_totals
from tests.counts.systems import SYSTEMS, read, tables


def steps(moves):
    """All steps of one person that the moves may take."""
    n = moves.directions.shape[1]
    found = [*np.eye(n, dtype=int)[moves.single], *moves.directions.toarray()]
    for cells in moves.groups:
        for a, b in product(cells, repeat=2):
            if a != b:
                found.append(np.eye(n, dtype=int)[a] - np.eye(n, dtype=int)[b])
    for grid in moves.grids:
        n_rows, n_columns = len(grid.cells), len(grid.cells[0])
        for i, k, j, m in product(range(n_rows), range(n_rows), range(n_columns), range(n_columns)):
            if i != k and j != m:
                corners = [grid.cells[i][j], grid.cells[k][m], grid.cells[i][m], grid.cells[k][j]]
                for a, b, c, d in product(*corners):
                    found.append(
                        sum(
                            s * np.eye(n, dtype=int)[x]
                            for s, x in ((1, a), (1, b), (-1, c), (-1, d))
                        )
                    )
    return [*found, *(-np.array(each) for each in found)]


def reached(start, moves, allowed):
    return reached_by(steps(moves), start, allowed)


def reached_by(possible, start, allowed):
    allowed, seen, pending = set(allowed), {start}, [start]
    while pending:
        table = np.array(pending.pop())
        for step in possible:
            new = tuple((table + step).tolist())
            if new in allowed and new not in seen:
                seen.add(new)
                pending.append(new)
    return seen


def moves_of(equations, statistics=(), given=None, *, bounded=False):
    matrix = sparse.csr_array(np.array(equations, dtype=float))
    n = matrix.shape[1]
    names = [f"known{k}" for k in range(matrix.shape[0])]
    return find_moves(matrix, statistics, np.full(n, bounded), names, given)


@pytest.mark.parametrize("name", SYSTEMS)
def test_moves_connect_all_tables_of_known_totals(name):
    equations, known = SYSTEMS[name]
    allowed = tables(equations, known, 4)
    assert len(allowed) > 1
    moves = moves_of(equations)
    assert all(not np.any(np.array(equations) @ step) for step in steps(moves))
    assert reached(allowed[0], moves, allowed) == set(allowed)


def test_without_swaps_two_margins_are_not_connected():
    equations, known = SYSTEMS["two margins"]
    allowed = tables(equations, known, 4)
    moves = moves_of(equations)
    without = replace(moves, grids=(), directions=moves.directions[:0])
    assert reached(allowed[0], without, allowed) != set(allowed)


def same_totals_of_bounded_counts():
    """Known difference of two latent totals; one cell of each never holds anyone."""
    equation, largest = [[1, 1, -1, -1]], np.array([0, 3, 3, 0])
    return equation, [x for x in tables(equation, [0], 3) if np.all(x <= largest)]


def test_cells_that_cannot_hold_anyone_do_not_cut_latent_totals():
    equation, allowed = same_totals_of_bounded_counts()
    assert len(allowed) == 4
    assert reached(allowed[0], moves_of(equation, bounded=True), allowed) == set(allowed)


def test_some_pairings_of_cells_are_not_enough(monkeypatch):
    monkeypatch.setattr("pymc_dapper.counts.reading.moves.MAX_PAIRINGS", 3)
    equation, allowed = same_totals_of_bounded_counts()
    assert reached(allowed[0], moves_of(equation), allowed) == {allowed[0]}
    with pytest.raises(ReadingError, match=r"'known0' holds fixed ties several .*more than 3\b"):
        moves_of(equation, bounded=True)
    assert moves_of([[1, 1, 1, 1, -1]], bounded=True).directions.shape == (4, 5)  # all there are


UNKNOWN = [[1, 1, 0, 0, 1], [0, 1, 1, 0, 2], [1, 0, 1, 1, 0]]


def test_other_systems_are_refused_by_name_unless_moves_are_given():
    with pytest.raises(ReadingError, match=r"'known0', 'known1', 'known2' hold fixed.*`moves=`"):
        moves_of(UNKNOWN)
    kernel = [[1, -1, 1, -2, 0], [-1, -1, -1, 2, 0]]
    with pytest.raises(ReadingError, match=r"the move .* changes what 'known0' holds fixed"):
        moves_of(UNKNOWN, given=np.array(kernel)[1:])
    basis = np.array([[1, -2, 0, -1, 1], [-1, 0, -2, 3, 1]])
    assert not np.any(np.array(UNKNOWN) @ basis.T)
    assert moves_of(UNKNOWN, given=basis).directions.shape == (2, 5)
    with pytest.raises(ReadingError, match="moves has shape"):
        moves_of(UNKNOWN, given=np.zeros((2, 4), dtype=int))
    with pytest.raises(ReadingError, match="moves must be integers"):
        moves_of(UNKNOWN, given=basis / 2)


def test_margins_of_bounded_counts_are_refused():
    with pm.Model() as model:
        x = pm.Binomial("x", n=3, p=0.5, shape=(3, 3))
        invariant("rows", x.sum(axis=1), [3, 3, 3])
        invariant("columns", x.sum(axis=0), [3, 3, 3])
    reading = read(model, "x")
    with pytest.raises(ReadingError, match="without upper bounds"):
        find_moves(
            reading.known.matrix, [], reading.bounded_cells(), ["rows"] * 3 + ["columns"] * 3
        )


def test_sums_over_disjoint_cells():
    a, b = (sparse.csr_array(np.array([row])) for row in ([1, 1, 0, 0], [0, 0, 1, 1]))
    nothing_known = sparse.csr_array(np.zeros((0, 4)))
    moves = find_moves(nothing_known, [a, b], np.zeros(4, dtype=bool), [])
    assert not moves.grids
    assert len(moves.groups) == 2


def test_cells_that_share_part_of_a_statistic_exchange_people_too():
    statistics = [sparse.csr_array(np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]]))]
    moves = moves_of([[1, 1, 1, 1]], statistics=statistics)
    assert [cells.tolist() for cells in moves.groups] == [[0, 1, 2, 3], [0, 1], [2, 3]]


def total_above_table():
    n = pm.Poisson("n", 2.0)
    t = pm.Multinomial("t", n=n, p=np.ones(3) / 3)
    pm.Normal("seen", t, 1.0, observed=np.ones(3))
    return [n, t], lambda n, t: t.sum() == n, (3,) * 4


def totals_above_rows():
    # Parameters for all rows at once, shared by them.
    a = pm.Gamma("a", 2, 1, shape=2)
    n = pm.NegativeBinomial("n", mu=2.0, alpha=1.0, shape=2)
    t = pm.DirichletMultinomial("t", n=n, a=a)
    pm.Normal("seen", t, 1.0, observed=np.ones((2, 2)))
    return [t, n], lambda t, n: np.array_equal(t.sum(axis=1), n), (2,) * 6


def totals_of_totals():
    n = pm.Poisson("n", 2.0)
    t = pm.Multinomial("t", n=n, p=np.ones(2) / 2)
    s = pm.Multinomial("s", n=t, p=np.ones((2, 2)) / 2)
    pm.Normal("seen", s, 1.0, observed=np.ones((2, 2)))
    right = lambda t, s, n: t.sum() == n and np.array_equal(s.sum(axis=1), t)  # noqa: E731
    return [t, s, n], right, (3, 3, 2, 2, 2, 2, 3)


def known_total_of_totals():
    n = pm.Binomial("n", 2, 0.5, shape=2)
    t = pm.Multinomial("t", n=n, p=np.ones(2) / 2)
    invariant("all", n.sum(), 3)
    pm.Normal("seen", t, 1.0, observed=np.ones((2, 2)))
    right = lambda n, t: np.array_equal(t.sum(axis=1), n) and n.sum() == 3  # noqa: E731
    return [n, t], right, (2,) * 6


def two_tables_of_one_total():
    n = pm.Poisson("n", 2.0)
    t = pm.Multinomial("t", n=n, p=np.ones(2) / 2)
    u = pm.Multinomial("u", n=n, p=np.ones(3) / 3)
    pm.Normal("seen", t, 1.0, observed=np.ones(2))
    pm.Normal("seen_too", u, 1.0, observed=np.ones(3))
    return [u, n, t], lambda u, n, t: t.sum() == n == u.sum(), (2,) * 6


def a_count_within_a_total():
    n = pm.Binomial("n", 2, 0.5)
    k = pm.Binomial("k", n=n, p=0.5)
    t = pm.Multinomial("t", n=k, p=np.ones(2) / 2)
    pm.Normal("seen", t, 1.0, observed=np.ones(2))
    return [k, t, n], lambda k, t, n: t.sum() == k <= n, (2,) * 4


def more_people_than_the_total():
    n = pm.Poisson("n", 2.0)
    t = pm.Multinomial("t", n=n + 2, p=np.ones(2) / 2)
    pm.Normal("seen", t, 1.0, observed=np.ones(2))
    return [n, t], lambda n, t: t.sum() == n + 2, (2, 4, 4)


LATENT_TOTALS = [
    total_above_table,
    totals_above_rows,
    totals_of_totals,
    known_total_of_totals,
    two_tables_of_one_total,
    a_count_within_a_total,
    more_people_than_the_total,
]


def system_of(build):
    """All tables of a small model, how it is read, and its moves."""
    with pm.Model() as model:
        counts, right, largest = build()
    reading = read(model, *(count.name for count in counts))
    cuts = np.cumsum([int(np.prod(count.type.shape)) for count in reading.counts])[:-1]
    shapes = [count.type.shape for count in reading.counts]

    def allowed(table):
        parts = zip(np.split(np.array(table), cuts), shapes, strict=True)
        return right(*(part.reshape(shape) for part, shape in parts))

    tables = [x for x in product(*(range(most + 1) for most in largest)) if allowed(x)]
    known = reading.known.matrix
    statistics = [matrix for terms in reading.terms for matrix in terms.linear.values()]
    names = ["known"] * known.shape[0]
    moves = find_moves(known, statistics, reading.bounded_cells(), names, totals=reading.totals)
    return tables, reading, moves


@pytest.mark.parametrize("build", LATENT_TOTALS)
def test_moves_connect_all_tables_under_latent_totals(build):
    tables, reading, moves = system_of(build)
    assert len(tables) > 5
    for table in tables:
        np.testing.assert_array_equal(reading.totals.completed(np.array(table)), table)
    # The totals go with the cells that they add up.
    of_all = [reading.totals.completed(step) for step in steps(moves)]
    assert reached_by(of_all, tables[0], tables) == set(tables)
    # And moves of the table alone, whose total stays as it is, don't connect them.
    kept = [
        step
        for step, whole in zip(steps(moves), of_all, strict=True)
        if not np.any(whole[reading.totals.follows])
    ]
    if reading.totals.follows.any():
        assert reached_by(kept, tables[0], tables) != set(tables)


def test_known_moves_change_a_total_with_its_cells():
    equations = sparse.csr_array(np.array([[1.0, -1, -1]]))
    totals = find_totals(equations)
    nothing = sparse.csr_array((0, 3))
    given = find_moves(nothing, [], np.zeros(3, bool), [], [[1, 1, 0], [0, 1, -1]], totals=totals)
    np.testing.assert_array_equal(given.directions.toarray(), [[0, 1, 0], [0, 1, -1]])
    with pytest.raises(
        ReadingError, match=r"the move \[0, 1, 0\] changes a total by more or less than"
    ):
        find_moves(nothing, [], np.zeros(3, bool), [], [[0, 1, 0]], totals=totals)
