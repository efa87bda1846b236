"""How models of counts are read: what is linear, terms, invariants, and moves."""

from dataclasses import replace
from itertools import combinations, permutations, product

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest
from scipy import sparse

from pymc_dapper import ReadingError
from pymc_dapper.counts.reading import blocks, find_moves, invariant, read_counts
from pymc_dapper.counts.reading.blocks import find_blocks, integer_kernel
from pymc_dapper.counts.reading.start import find_start
from pymc_dapper.counts.reading.totals import find_totals
from pymc_dapper.graphs.rebuild import inline_symbolic_ops
from pymc_dapper.graphs.terms.roles import Linear
from pymc_dapper.graphs.terms.walk import CountWalk

SHAPE = (2, 3)
WEIGHTS = np.arange(6.0).reshape(3, 2)
PLACES = np.array([1, 0, 1])


LINEAR = {
    "sum": lambda x: x.sum(),
    "margins": lambda x: pt.concatenate([x.sum(axis=0), x.sum(axis=1)]),
    "difference": lambda x: 3 - x[0] + 2 * x[1] / 4,
    "product": lambda x: x @ WEIGHTS,
    "product from the left": lambda x: WEIGHTS @ x,
    "product with a vector": lambda x: pt.dot(x, WEIGHTS[:, 1]),
    "einsum": lambda x: pt.einsum("ij,jk->ik", x, WEIGHTS),
    "reshaped": lambda x: x.T.reshape((6,))[::2],
    "looked up": lambda x: x[:, PLACES].flatten(),
    "stacked": lambda x: pt.stack([x[0, 1], x[1, 2], pt.constant(4)]),
    "cumulative": lambda x: pt.cumsum(x, axis=1),
    "added up by group": lambda x: pt.zeros((2, 2))[:, PLACES].inc(x),
    "set": lambda x: pt.zeros((3, 3))[1:, :].set(x),
    "broadcast": lambda x: x[:, None, :] + np.ones((2, 4, 3)),
    "mean": lambda x: x.mean(axis=1),
}


@pytest.mark.parametrize("name", LINEAR)
def test_what_is_linear_is_read_with_its_coefficients(name):
    x = pt.tensor("x", dtype="int64", shape=SHAPE)
    [statistic] = inline_symbolic_ops([LINEAR[name](x)])
    role = CountWalk([x], {}).follow(statistic)
    assert isinstance(role, Linear)
    for seed in range(3):
        counts = np.random.default_rng(seed).integers(0, 9, SHAPE)
        expected = statistic.eval({x: counts}, mode="FAST_COMPILE")
        found = (
            role.matrix @ counts.ravel()
            + role.offset.eval({x: counts}, on_unused_input="ignore", mode="FAST_COMPILE").ravel()
        )
        np.testing.assert_allclose(found.reshape(role.shape), expected, atol=1e-12)


@pytest.mark.parametrize("name", ["square", "product of two", "maximum", "sorted"])
def test_what_is_not_linear_is_not(name):
    x = pt.tensor("x", dtype="int64", shape=SHAPE)
    statistic = {
        "square": x**2,
        "product of two": x[0] * x[1],
        "maximum": x.max(axis=0),
        "sorted": pt.sort(x),
    }[name]
    assert not isinstance(CountWalk([x], {}).follow(statistic), Linear)


def read(model, *names):
    values = [model.rvs_to_values[model[name]] for name in names]
    return read_counts(model, values, model.initial_point())


def test_terms_of_the_same_cells_are_added_up_and_totals_are_invariants():
    with pm.Model() as model:
        x = pm.Multinomial("x", n=[30, 40], p=np.ones((2, 3)) / 3)
        pm.Normal("cells", x, 2.0, observed=np.ones((2, 3)))
        pm.Laplace("columns", x.sum(axis=0), 2.0, observed=np.ones(3))
        pm.Potential("distance", -pt.sqrt(((x - 3) ** 2).sum()))
    reading = read(model, "x")
    assert [(terms.factors, terms.size) for terms in reading.terms] == [
        (("x", "cells"), 6),
        (("columns",), 3),
    ]
    [whole] = reading.wholes
    assert whole.factor == "distance"
    assert "Sqrt" in whole.reason
    [known] = reading.invariants
    np.testing.assert_array_equal(
        known.rows.matrix.toarray(), [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    )
    np.testing.assert_array_equal(known.rows.offset.eval(mode="FAST_COMPILE"), [-30, -40])


@pytest.mark.parametrize(
    "potential",
    [
        lambda x: pt.switch(pt.all(pt.eq(x.sum(axis=1), [4, 5])), 0, -np.inf),
        lambda x: pt.switch(pt.eq(x.sum(axis=1), [4, 5]), 0.0, -np.inf),
        lambda x: pt.switch(pt.neq(x.sum(axis=1), [4, 5]), -np.inf, 0.0).sum(),
        lambda x: pt.switch(pt.any(pt.neq(x.sum(axis=1), [4, 5])), -np.inf, -(x**2).sum()),
        lambda x: pt.switch(~pt.all(pt.eq(x.sum(axis=1), [4, 5])), -np.inf, 0.0),
        lambda x: pm.math.log(1.0) + pt.switch(pt.eq(x.sum(axis=1), [4, 5]), 0.0, -np.inf),
        lambda x: 2.0 * pt.switch(pt.eq(x.sum(axis=1), [4, 5]), 0.0, -np.inf) / 3,
        lambda x: pt.log(pt.eq(x.sum(axis=1), [4, 5])),
        lambda x: pt.log(pt.all(pt.eq(x.sum(axis=1), [4, 5]))),
        # With something that isn't a sum of terms.
        lambda x: pt.switch(pt.all(pt.eq(x.sum(axis=1), [4, 5])), -pt.sqrt((x**2).sum()), -np.inf),
        lambda x: pt.log(pt.all(pt.eq(x.sum(axis=1), [4, 5]))) - pt.max(x),
    ],
)
def test_invariants_may_be_written_in_several_ways(potential):
    with pm.Model() as model:
        x = pm.Poisson("x", 3, shape=(2, 3))
        pm.Potential("known", potential(x))
    [known] = read(model, "x").invariants
    np.testing.assert_array_equal(
        known.rows.matrix.toarray(), [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    )
    np.testing.assert_array_equal(known.rows.offset.eval(mode="FAST_COMPILE"), [-4, -5])


def test_a_total_is_found_whatever_its_probabilities_depend_on():
    with pm.Model() as model:
        x = pm.Poisson("x", 3.0)
        y = pm.Multinomial("y", n=10, p=pt.stack([x + 1, 2]) / (x + 3))
        pm.Normal("released", y, 1.0, observed=np.ones(2))
    reading = read(model, "x", "y")
    [known] = reading.invariants
    np.testing.assert_array_equal(known.rows.matrix.toarray(), [[0, 1, 1]])
    assert [whole.factor for whole in reading.wholes] == ["y"]


# Parameter checks ---------------------------------------------------------------------


CHILDREN = {
    "free": lambda x: pm.Bernoulli("child", 0.5 + 0.3 * x),
    "scale": lambda x: pm.Normal("child", x, 0.5 * x - 0.4, observed=1.0),
    "probability": lambda x: pm.Binomial("child", n=3, p=pm.Normal("p", 0.3) + x / 4, observed=2),
    "mean": lambda x: pm.NegativeBinomial("child", mu=x - 1, alpha=1.0, observed=2),
    "total": lambda x: pm.Multinomial("child", n=x - 2, p=np.ones(2) / 2),
    "whole": lambda x: pm.DirichletMultinomial(
        "child", n=2, a=pt.stack([x - 1, pt.sqrt(x * x + 1)]), observed=[1, 1]
    ),
    "parameter": lambda x: pm.Beta("child", x - 2.0, 1.0),
}


@pytest.mark.parametrize("name", CHILDREN)
def test_a_count_with_which_parameters_are_invalid_is_impossible(name):
    with pm.Model() as model:
        x = pm.Poisson("x", 2.0, initval=4)
        CHILDREN[name](x)
    point = model.initial_point()
    reading = read_counts(model, [model.rvs_to_values[x]], point)
    logp = model.compile_logp([x, model["child"]], mode="FAST_COMPILE")
    at = [{**point, "x": np.array(count)} for count in range(6)]
    expected = np.array([logp(each) for each in at])
    parts = [*reading.terms, *reading.wholes]
    found = np.array([sum(value_of(part, each, reading) for part in parts) for each in at])
    possible = np.isfinite(expected)
    assert 0 < possible.sum() < 6
    np.testing.assert_array_equal(np.isfinite(found), possible)
    assert np.ptp(found[possible] - expected[possible]) < 1e-10


def value_of(part, point, reading):
    """A part of the log-density at a point."""
    counts = np.concatenate([np.ravel(point[x.name]) for x in reading.counts])
    given = {x: point[x.name] for x in reading.parameters}
    options = {"mode": "FAST_COMPILE", "on_unused_input": "ignore"}
    if not hasattr(part, "function"):
        linear = {
            x: (at.matrix @ counts).reshape(at.shape) + at.offset.eval(given, **options)
            for x, at in part.linear.items()
        }
        linear = {x: value.astype(x.dtype) for x, value in linear.items()}
        return part.log_density.eval({**linear, **given}, **options)
    linear = {x: matrix @ counts for x, matrix in part.linear.items()}
    fixed = {x: values.eval(given, **options) for x, values in part.fixed.items()}
    with np.errstate(all="ignore"):
        return sum(
            part.function.eval({x: v[k] for x, v in {**linear, **fixed}.items()}, **options)
            for k in range(part.size)
        )


# Moves --------------------------------------------------------------------------------


def tables(equations, known, largest):
    """All tables that satisfy equations."""
    cells = product(range(largest + 1), repeat=len(equations[0]))
    return [x for x in cells if np.array_equal(np.array(equations) @ x, known)]


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


ROWS = [[1, 1, 0, 0], [0, 0, 1, 1]]
COLUMNS = [[1, 0, 1, 0], [0, 1, 0, 1]]
SYSTEMS = {
    "one total": ([[1, 1, 1]], [4]),
    "disjoint totals": ([[1, 1, 0, 0], [0, 0, 1, 1]], [2, 3]),
    "nested totals": ([[1, 1, 1, 1], [1, 1, 0, 0]], [4, 1]),
    "a total of some": ([[0, 1, 1]], [3]),
    "a latent total": ([[1, 1, -1]], [0]),
    "two margins": (ROWS + COLUMNS, [1, 1, 1, 1]),
    "two margins and what follows": ([*ROWS, COLUMNS[0], [1, 1, 1, 1]], [2, 1, 1, 3]),
    "margins of pairs": ([[1, 1, 1, 1, 0, 0], [1, 1, 0, 0, 1, 0], [0, 0, 1, 1, 0, 1]], [2, 2, 1]),
}


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
    matrix = sparse.vstack([each.rows.matrix for each in reading.invariants], format="csr")
    with pytest.raises(ReadingError, match="without upper bounds"):
        find_moves(matrix, [], reading.bounded_cells(), ["rows"] * 3 + ["columns"] * 3)


def test_cells_that_share_part_of_a_statistic_exchange_people_too():
    statistics = [sparse.csr_array(np.array([[1.0, 1, 0, 0], [0, 0, 1, 1]]))]
    moves = moves_of([[1, 1, 1, 1]], statistics=statistics)
    assert [cells.tolist() for cells in moves.groups] == [[0, 1, 2, 3], [0, 1], [2, 3]]


# Latent totals ------------------------------------------------------------------------


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
    matrices = [each.rows.matrix for each in reading.invariants]
    known = sparse.vstack([sparse.csr_array((0, reading.n_cells)), *matrices], format="csr")
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


def test_totals_are_solved_for_whatever_the_order_of_equations():
    chain = [[1, -1, -1, 0, 0, 0], [0, 1, 0, -1, -2, 0], [0, 0, 1, 0, 0, -2]]
    for order in permutations(chain):
        totals = find_totals(sparse.csr_array(np.array(order, dtype=float)))
        np.testing.assert_array_equal(totals.follows, [1, 1, 1, 0, 0, 0])
        np.testing.assert_array_equal(
            totals.completed(np.array([9, 9, 9, 1, 2, 4])), [13, 5, 8, 1, 2, 4]
        )


@pytest.mark.parametrize("equation", [[1, 1, -1, -1], [2, -1, -1, 0], [1, 1, 1, 1], [0, 0, 1, 0]])
def test_what_is_no_sum_of_others_does_not_follow_from_them(equation):
    assert not find_totals(sparse.csr_array(np.array([equation], dtype=float))).follows.any()


def test_known_moves_change_a_total_with_its_cells():
    equations = sparse.csr_array(np.array([[1.0, -1, -1]]))
    totals = find_totals(equations)
    nothing = sparse.csr_array((0, 3))
    given = find_moves(nothing, [], np.zeros(3, bool), [], [[1, 1, 0], [0, 1, -1]], totals=totals)
    np.testing.assert_array_equal(given.directions.toarray(), [[0, 1, 0], [0, 1, -1]])
    with pytest.raises(ReadingError, match=r"the move \[0, 1, 0\] changes a total otherwise than"):
        find_moves(nothing, [], np.zeros(3, bool), [], [[0, 1, 0]], totals=totals)


# Blocks -------------------------------------------------------------------------------


def blocks_of(rows, invariants=(), ties=()):
    n = len(rows[0])
    matrices = [
        sparse.csr_array(np.array(each, dtype=float).reshape(-1, n)) for each in (rows, ties)
    ]
    known = sparse.csr_array(np.array(invariants, dtype=float).reshape(-1, n))
    return find_blocks(known, matrices[:1], matrices[1:])


NESTED = [[1, 1, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0], [1, -1, 0, 0, 0, 0]]
WINDOWS = [[1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0]]


def test_only_sums_that_overlap_otherwise_than_nested_make_blocks():
    assert blocks_of([*NESTED, *np.eye(6)]) == ()
    [block] = blocks_of([*np.eye(6), *WINDOWS, [1, 1, 1, 1, 1, 1]])
    np.testing.assert_array_equal(block.cells, [0, 1, 2, 3])
    [block] = blocks_of([[0, 0, 1, 2, 0, 0]])
    np.testing.assert_array_equal(block.cells, [2, 3])
    [block] = blocks_of(NESTED, ties=[[0, 1, 0, 1, 1, 0], [0, 0, 1, -1, 0, 0]])
    np.testing.assert_array_equal(block.cells, [1, 3, 4])


def test_a_total_that_is_known_ties_nothing_together():
    total, halves = [[1] * 6], [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert blocks_of(np.eye(6), invariants=total, ties=total) == ()
    assert blocks_of(np.eye(6), invariants=halves, ties=total) == ()
    [block] = blocks_of(np.eye(6), invariants=halves[:1], ties=total)
    np.testing.assert_array_equal(block.cells, range(6))


def test_changes_of_a_block_keep_the_invariants():
    [block] = blocks_of(WINDOWS, invariants=[[1, 1, 1, 1, 1, 1], [1, 0, 0, 0, 1, 0]])
    np.testing.assert_array_equal(block.cells, range(5))
    assert block.basis.shape == (3, 5)
    assert np.all(block.basis.sum(axis=1) == 0)
    assert np.all(block.basis[:, 0] + block.basis[:, 4] == 0)


def test_large_blocks_are_cut_into_pieces(monkeypatch):
    monkeypatch.setattr(blocks, "MAX_BLOCK_CELLS", 3)
    rows = [[1, 1, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1]]
    assert [block.cells.tolist() for block in blocks_of(rows)] == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("seed", range(5))
def test_an_integer_kernel_holds_all_integer_vectors_that_a_matrix_takes_to_zero(seed):
    matrix = np.random.default_rng(seed).integers(-3, 4, (2, 5))
    kernel = integer_kernel(matrix)
    assert kernel.shape == (5 - np.linalg.matrix_rank(matrix), 5)
    assert not np.any(matrix @ kernel.T)
    # A basis of all of them, not of a part: its maximal minors have no common factor.
    columns = list(combinations(range(5), len(kernel)))
    minors = [round(np.linalg.det(kernel[:, list(each)])) for each in columns]
    assert np.gcd.reduce(minors) == 1


@pytest.mark.parametrize("name", SYSTEMS)
def test_a_start_has_the_known_totals(name):
    equations, known = SYSTEMS[name]
    matrix = sparse.csr_array(np.array(equations, dtype=float))
    names = [f"known{k}" for k in range(len(known))]
    start = find_start(matrix, np.array(known, dtype=float), names, np.full(matrix.shape[1], 7))
    np.testing.assert_array_equal(matrix @ start, known)
    assert start.min() >= 0
