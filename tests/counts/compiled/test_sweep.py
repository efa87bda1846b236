"""Models and moves of counts in the form that the kernel takes."""

import numpy as np
import pymc as pm
import pytest
from scipy import sparse

from pymc_dapper.counts.compiled import sweep as compiled
from pymc_dapper.counts.compiled.op import Kinds
from pymc_dapper.counts.compiled.sweep import compile_count_sweep, layout_of, schedule_of
from pymc_dapper.counts.reading.known_totals import moves_of
from pymc_dapper.counts.reading.moves import Grid, Moves
from pymc_dapper.counts.start import Starts
from pymc_dapper.graphs.errors import ReadingError
from tests.counts.reading.test_linked import linked_tables
from tests.counts.systems import read
from tests.evaluated_in_python import evaluated_in_python


def test_moves_are_laid_end_to_end():
    moves = Moves(
        single=np.array([7]),
        groups=(np.array([0, 1, 2]), np.array([4, 5])),
        passes=np.array([1, 3]),
        grids=(Grid(((np.array([0]), np.array([1, 2])), (np.array([3]), np.array([4]))), 2),),
        directions=sparse.csr_array(np.array([[1, 0, -2, 0, 0], [0, 0, 0, 1, 1]])),
        blocks=(),
    )
    schedule = schedule_of(moves)
    assert schedule.lines.single.tolist() == [7]
    # A group is a row of cells.
    assert (schedule.grids.rows.tolist(), schedule.grids.columns.tolist()) == ([1, 1, 2], [3, 2, 2])
    assert schedule.grids.passes.tolist() == [1, 3, 2]
    assert schedule.grids.places.tolist() == [0, 3, 5]
    assert schedule.grids.starts.tolist() == [0, 1, 2, 3, 4, 5, 6, 8, 9, 10]
    assert schedule.grids.cells.tolist() == [0, 1, 2, 4, 5, 0, 1, 2, 3, 4]
    assert schedule.lines.starts.tolist() == [0, 2, 4]
    assert schedule.lines.cells.tolist() == [0, 2, 3, 4]
    assert schedule.lines.steps.tolist() == [1, -2, 1, 1]
    assert schedule.lines.order.tolist() == [0, 1]
    assert schedule.joint.starts.tolist() == [0]


def test_linear_functions_of_a_term_stand_next_to_each_other():
    with pm.Model() as model:
        x = pm.Poisson("x", 2.0, shape=2)
        pm.Normal("product", x[0] - x[1], 1.0 + x.sum(), observed=0.5)
    structure = layout_of(read(model, "x"))
    # A term for each cell, and one of two sums of both.
    assert structure.terms.tolist() == [0, 1, 2, 2]
    assert structure.kinds.tolist() == [0, 0, 1]
    assert structure.first.tolist() == [0, 1, 2]
    assert structure.starts.tolist() == [0, 3, 6]
    matrix = np.zeros((4, 2))
    matrix[structure.rows, [0, 0, 0, 1, 1, 1]] = structure.coefficients
    assert sorted(matrix[2:].tolist()) == [[1, -1], [1, 1]]
    assert matrix[:2].tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("kind", ["grids", "linked"])
def test_moves_that_a_model_lacks_are_left_out_of_the_code_only(kind, monkeypatch):
    """With all kinds of moves in its code, a sweep draws the same."""
    if kind == "linked":
        model, names = linked_tables(("ab", "bc"), n=20)
    else:
        names = ["x"]
        with pm.Model() as model:
            x = pm.Multinomial("x", n=20, p=np.full(4, 0.25))
            pm.Normal("noisy", x, 1.0, observed=[3.0, 9.0, 5.0, 2.0])
    reading = read(model, *names)
    starts = Starts(reading, 50)
    moves = moves_of(reading)
    assert bool(moves.linked) == (kind == "linked")
    given = [shared.get_value() for shared in reading.data]
    start = starts.with_known_totals(np.zeros(reading.n_cells, dtype=int), given, ReadingError)
    outcomes = []
    for kinds in (Kinds, lambda *_: Kinds(grids=True, linked=True, joint=True)):
        monkeypatch.setattr(compiled, "Kinds", kinds)
        with evaluated_in_python():
            sweep = compile_count_sweep(reading, moves, {})
            counts, rng, drawn = start, np.random.default_rng(0), []
            for _ in range(30):
                counts = sweep(rng, counts, sweep.everywhere, given).counts
                drawn.append(counts.tolist())
        outcomes.append(drawn)
    assert len({*map(tuple, outcomes[0])}) > 5
    assert outcomes[0] == outcomes[1]


def test_joint_moves_are_compiled_when_tuning_finds_some(monkeypatch):
    """Then a sweep draws as if they had been compiled from the start."""
    with pm.Model() as model:
        x = pm.Multinomial("x", n=400, p=np.full(9, 1 / 9), shape=9)
        table = x.reshape((3, 3))
        for k, seen in enumerate((table, table.sum(axis=0), table.sum(axis=1))):
            pm.Normal(f"noisy_{k}", seen, 2.0, observed=np.full(seen.type.shape, 400 / 9))
    reading = read(model, "x")
    moves, given = moves_of(reading), [shared.get_value() for shared in reading.data]
    start = Starts(reading, 50).with_known_totals(np.full(9, 44), given, ReadingError)
    none = np.zeros(sum(x.size * len(x.linear) for x in reading.terms))
    outcomes, sharp = [], np.full(len(none), 4.0)
    with evaluated_in_python():
        assert compile_count_sweep(reading, moves, {}, (start, given)).options is None
        monkeypatch.setattr(compiled, "curvatures_in_python", lambda *_: iter([none]))
        for at in (None, (start, given)):
            sweep = compile_count_sweep(reading, moves, {}, at)
            assert (sweep.options is None) == (at is None)
            tuning = sweep.tune(start, sharp)
            assert sweep.options is None
            counts, rng, drawn = start, np.random.default_rng(0), []
            for _ in range(5):
                counts = sweep(rng, counts, tuning, given).counts
                drawn.append(counts.tolist())
            outcomes.append(drawn)
    assert len({*map(tuple, outcomes[0])}) == 5
    assert outcomes[0] == outcomes[1]
