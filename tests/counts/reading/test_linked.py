"""Moves of linked tables keep what the tables share, and connect all of them."""

from dataclasses import replace
from itertools import combinations_with_replacement, product
from math import prod

import numpy as np
import pymc as pm
import pytest

import pymc_dapper as pmd
from pymc_dapper import ReadingError
from pymc_dapper.backend.in_python import in_python
from pymc_dapper.counts.compiled.sweep import schedule_of
from pymc_dapper.counts.kernels.line import Line
from pymc_dapper.counts.kernels.linked import MOST_CHANGED, set_linked_line
from pymc_dapper.counts.reading.known_totals import moves_of
from pymc_dapper.counts.reading.moves import Moves
from tests.counts.reading.test_moves import reached_by
from tests.counts.systems import read
from tests.counts_enumeration import ANSWERS, Script

SIZES = {"a": 2, "b": 3, "c": 2, "d": 2}
CHAIN = ("ab", "bc", "cd")
STAR = ("ab", "bc", "bd")
TRIPLES = ("abc", "bcd")
PEOPLE = 2


def linked_tables(names, n=PEOPLE, lead=(), known=None, sizes=SIZES):
    """Tables of the columns that their names have, each given those before its last one."""
    with pm.Model() as model:
        root = names[0][:-1]
        shape = (*lead, *(sizes[x] for x in root))
        p = np.full(shape, 1 / prod(shape[len(lead) :]))
        if len(root) > 1:
            flat = pm.Multinomial("root", n=n, p=p.reshape(*lead, -1))
            total = flat.reshape(shape)
        else:
            total = pm.Multinomial("root", n=n, p=p)
        tables = {root: total}
        for name in names:
            *given, own = name
            of = next(x for x in reversed(tables) if set(given) <= set(x))
            out = tuple(len(lead) + k for k, x in enumerate(of) if x not in given)
            total = tables[of].sum(axis=out) if out else tables[of]
            shape = (*total.type.shape, sizes[own])
            table = pm.Multinomial(name, n=total, p=np.full(shape, 1 / sizes[own]), shape=shape)
            tables[name] = table
            pmd.GaussianMechanism(1.0).potential(f"noisy_{name}", table, released=np.ones(shape))
        if known:
            pmd.invariant("known", tables["ab"].sum(axis="ba".index(known)), [1] * sizes[known])
    return model, ["root", *names]


def found(model, names):
    reading = read(model, *names)
    return reading, moves_of(reading)


def all_tables(names, people, sizes=SIZES):
    """The tables of all people there may be, each in one vector, without the root."""
    columns = sorted(set("".join(names)))
    everybody = product(*(range(sizes[x]) for x in columns))
    cells = []
    for person in everybody:
        of = dict(zip(columns, person, strict=True))
        parts = []
        for name in names:
            table = np.zeros([sizes[x] for x in name], dtype=int)
            table[tuple(of[x] for x in name)] = 1
            parts.append(table.ravel())
        cells.append(np.concatenate(parts))
    chosen = combinations_with_replacement(range(len(cells)), people)
    return sorted({tuple(sum(cells[k] for k in each).tolist()) for each in chosen})


MADE = {}
LINE = in_python(set_linked_line, MADE)
for each in MADE.values():
    each.__globals__.update(ANSWERS)


def new_line(n_tables):
    """Memory for a line of so many tables."""
    return Line(*np.zeros((2, n_tables * 2**MOST_CHANGED), dtype=int), *[np.zeros(0)] * 5)


def lines_of(linked):
    """All lines of linked tables, each as the changes of all cells."""
    packed = schedule_of(replace(Moves.none(), linked=(linked,))).linked
    n_cells = max(linked.starts + (linked.strides * (linked.sizes - 1)).sum(axis=1)) + 1
    for k in np.unique(linked.sets, axis=0, return_index=True)[1]:
        pending = [()]
        while pending:
            script = pending.pop()
            draws, line = Script(script), new_line(len(linked.starts))
            n = LINE(packed, k, line, draws)
            pending += [(*script, answer) for answer in range(draws.options)]
            if not draws.options:
                step = np.zeros(n_cells, dtype=int)
                np.add.at(step, line.cells[:n], line.steps[:n])
                yield step


def reached(linked, first, people, names):
    """The tables that moves lead to from one of them, and all that there are."""
    steps = np.unique([step[first:] for step in lines_of(linked)], axis=0)
    allowed = all_tables(names, people)
    return reached_by([*steps, *-steps], allowed[0], allowed), set(allowed)


@pytest.mark.parametrize("names", [CHAIN, STAR, TRIPLES], ids=" ".join)
def test_moves_keep_what_tables_share_and_connect_all(names):
    reading, moves = found(*linked_tables(names))
    [linked] = moves.linked
    assert not len(moves.single)
    assert not (*moves.groups, *moves.grids, *moves.blocks)
    assert sorted(linked.sizes.tolist()) == sorted(SIZES[x] for x in set("".join(names)))
    for step in lines_of(linked):
        assert not np.any(reading.known.matrix @ step)
    there, everything = reached(linked, reading.n_cells - len(all_tables(names, 1)[0]), 2, names)
    assert there == everything


@pytest.mark.parametrize("names", [CHAIN, TRIPLES], ids=" ".join)
def test_without_moves_of_one_column_not_all_are_connected(names):
    reading, moves = found(*linked_tables(names))
    [linked] = moves.linked
    several = replace(linked, sets=linked.sets[linked.sets[:, 1] >= 0])  # in turn, not at once
    there, everything = reached(several, reading.n_cells - len(all_tables(names, 1)[0]), 2, names)
    assert there < everything


def test_rows_of_public_data_lead_all_tables_and_do_not_change():
    reading, moves = found(*linked_tables(("ab", "bc"), n=[2, 3], lead=(2,)))
    [linked] = moves.linked
    assert linked.strides.shape == (2, 4)
    [rows] = [k for k in range(4) if np.all(linked.strides[:, k] > 0) and linked.sizes[k] == 2]
    assert [rows, -1, -1] not in linked.sets.tolist()
    assert all(not np.any(reading.known.matrix @ step) for step in lines_of(linked))


def test_without_a_known_number_people_come_and_go():
    with pm.Model() as model:
        rate = np.array([2.0, 3.0])
        a = pm.Poisson("root", rate, shape=2)
        ab = pm.Multinomial("ab", n=a, p=np.full((2, 3), 1 / 3), shape=(2, 3))
        bc = pm.Multinomial("bc", n=ab.sum(axis=0), p=np.full((3, 2), 0.5), shape=(3, 2))
        pmd.GaussianMechanism(1.0).potential("noisy", bc, released=np.ones((3, 2)))
    _, moves = found(model, ["root", "ab", "bc"])
    [linked] = moves.linked
    assert [-1, -1, -1] in linked.sets.tolist()
    there, _ = reached(linked, 2, 2, ("ab", "bc"))
    assert there == set(all_tables(("ab", "bc"), 2))
    sums = {step[2:8].sum() for step in lines_of(linked)}
    assert sums == {0, 1}


@pytest.mark.parametrize("column", "ab")
def test_columns_of_a_known_margin_change_with_others_only(column):
    reading, moves = found(*linked_tables(("ab", "bc"), n=SIZES[column], known=column))
    [linked] = moves.linked
    assert all(not np.any(reading.known.matrix @ step) for step in lines_of(linked))
    known = [x for x in all_tables(("ab", "bc"), SIZES[column]) if margin(x, column) == {1}]
    steps = np.unique([step[2:] for step in lines_of(linked)], axis=0)
    assert reached_by([*steps, *-steps], known[0], known) == set(known)


def margin(cells, column):
    return set(np.reshape(cells[:6], (2, 3)).sum(axis="ba".index(column)).tolist())


def test_two_known_margins_and_parts_of_one_are_refused():
    model, names = linked_tables(("ab", "bc"), n=6, known="a")
    with model:
        pmd.invariant("sums_of_c", model["bc"].sum(axis=0), [3, 3])
    with pytest.raises(ReadingError, match=r"doesn't know moves that keep what .*'sums_of_c'"):
        found(model, names)
    model, names = linked_tables(("ab", "bc"), n=6, sizes=SIZES | {"b": 4})
    with model:
        pmd.invariant("first_of_b", model["bc"].sum(axis=1)[0], 2)
    with pytest.raises(ReadingError, match=r"doesn't know moves that keep what .*'first_of_b'"):
        found(model, names)


def test_tables_that_are_linked_in_a_circle_are_refused():
    model, names = linked_tables(("ab", "bc", "cd"))
    with model:
        pmd.invariant("circle", model["cd"].sum(axis=0) - model["ab"].sum(axis=1), [0, 0])
    with pytest.raises(ReadingError, match=r"doesn't know moves that keep what .*'circle'"):
        found(model, names)


def test_two_groups_of_people_are_linked_apart():
    first, names = linked_tables(("ab", "bc"))
    with first:
        a = pm.Multinomial("other_root", n=3, p=[0.5, 0.5])
        b = pm.Multinomial("other_ab", n=a, p=np.full((2, 2), 0.5), shape=(2, 2))
        c = pm.Multinomial("other_bc", n=b.sum(axis=0), p=np.full((2, 2), 0.5), shape=(2, 2))
        pmd.GaussianMechanism(1.0).potential("other", c, released=np.ones((2, 2)))
    names = [*names, "other_root", "other_ab", "other_bc"]
    reading, moves = found(first, names)
    assert [len(x.starts) for x in moves.linked] == [2, 2]
    for k in range(sum(len(x.sets) for x in moves.linked)):
        line = new_line(4)
        n = LINE(schedule_of(moves).linked, k, line, Script([0] * 20))
        step = np.zeros(reading.n_cells, dtype=int)
        np.add.at(step, line.cells[:n], line.steps[:n])
        assert n > 0
        assert not np.any(reading.known.matrix @ step)


def test_two_groups_of_unknown_numbers_of_people_are_refused():
    with pm.Model() as model:
        names = []
        for k in "12":
            tables = [pm.Poisson(f"root{k}", 2.0, shape=3)]
            for name in ("ab", "bc", "cd"):
                n = tables[-1].sum(axis=0) if tables[1:] else tables[0]
                tables.append(pm.Multinomial(name + k, n=n, p=np.full((3, 3), 1 / 3), shape=(3, 3)))
            pmd.GaussianMechanism(1.0).potential(f"noisy{k}", tables[-1], released=np.ones((3, 3)))
            names += [x.name for x in tables]
    with pytest.raises(ReadingError, match="doesn't know moves"):
        found(model, names)
