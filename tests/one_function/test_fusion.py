"""Loops joined to one: random functions return the same, bit for bit."""

from textwrap import dedent

import numpy as np
import pytest

from pymc_dapper.one_function import fusion
from pymc_dapper.one_function.fusion import Step, fused

ROWS, COLUMNS = 4, 3


def changing(x):
    """As a generator does, change what is given."""
    before = x.copy()
    x += 1
    return before


def copying(into, x):
    into[...] = x


class Program:
    """A random function of tables, as the writer writes functions: lines, one after the other."""

    def __init__(self, seed):
        self.rng, self.count, self.lines = np.random.default_rng(seed), 0, []
        self.tables, self.numbers, self.vectors = ["x0"], ["1.5"], []
        steps = (self.table, self.table, self.rows, self.total, self.number, self.copy, self.call)
        for _ in range(14):
            self.rng.choice(steps)()

    def new(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def add(self, *lines, depth=0):
        self.lines += ["    " * depth + line for line in lines]

    def loops(self, columns=COLUMNS):
        i, j = self.new("i"), self.new("i")
        self.add(f"for {i} in range({ROWS}):")
        return i, j, f"for {j} in range({columns}):"

    def read(self, i, j):
        """Read a table at the loops' own entry, at another one of the row, or of another row."""
        at = self.new("t")
        own = self.rng.choice([f"{i}, {j}", f"{i}, {j}", f"{i}, 0", f"0, {j}", f"{at}, {j}"])
        entry = f"{self.rng.choice(self.tables)}[{own}]"
        return [f"{at} = {ROWS - 1} - {i}", f"{(t := self.new('t'))} = {entry}"], t

    def table(self):
        name, wide = self.new("a"), self.rng.choice([COLUMNS, COLUMNS - 1])
        self.add(f"{name} = np.full(({ROWS}, {COLUMNS}, ), 2.0)")
        i, j, inner = self.loops(wide)
        read, t = self.read(i, j)
        place = self.rng.choice([f"{i}, {j}", f"{i}, {j}", f"{read[0][:3].strip()}, {j}"])
        self.add(inner, depth=1)
        self.add(*read, f"{name}[{place}] = ({t} * {self.rng.choice(self.numbers)})", depth=2)
        self.tables.append(name)

    def rows(self):
        name, s = self.new("a"), self.new("s")
        self.add(f"{name} = np.empty(({ROWS}, ), np.float64)")
        i, j, inner = self.loops()
        self.add(f"{s} = 0.0", inner, depth=1)
        read, t = self.read(i, j)
        self.add(*read, f"{s} = ({t} + {s})", depth=2)
        self.add(f"{name}[{i}] = {s}", depth=1)
        self.vectors.append(name)

    def total(self):
        s = self.new("s")
        self.add(f"{s} = 0.0")
        i, j, inner = self.loops()
        read, t = self.read(i, j)
        self.add(inner, depth=1)
        self.add(*read, f"{s} = ({t} + {s})", depth=2)
        self.add(f"{(t := self.new('t'))} = {s}")
        self.numbers.append(t)

    def number(self):
        entries = [f"{self.rng.choice(self.tables)}[1, 1]", *(f"{v}[2]" for v in self.vectors[-1:])]
        self.add(f"{(t := self.new('t'))} = {self.rng.choice(entries)}")
        self.numbers.append(t)

    def copy(self):
        name, of = self.new("a"), self.rng.choice(self.tables)
        self.add(f"{name} = np.empty(({ROWS}, {COLUMNS}, ), np.float64)", f"r0({name}, {of})")
        i = self.new("i")
        self.add(f"for {i} in range({ROWS}):")
        self.add(f"{name}[{i}, 0] = {name}[{i}, 0] + {self.rng.choice(self.numbers)}", depth=1)
        self.tables.append(name)

    def call(self):
        self.add(f"{(name := self.new('a'))} = f0({self.rng.choice(self.tables)})")
        self.tables.append(name)

    def values(self, lines):
        body = [*lines, f"return {', '.join(self.tables + self.numbers + self.vectors)},"]
        names = {"np": np, "f0": changing, "r0": copying}
        exec("\n    ".join(["def program(x0):", *body]), names)
        return names["program"](np.random.default_rng(0).normal(size=(ROWS, COLUMNS)))


def n_loops(lines):
    return sum("for " in line for line in lines)


def different(seeds=range(300)):
    """The random functions that return something else with loops joined; and the loops saved."""
    wrong, saved = [], 0
    for seed in seeds:
        program = Program(seed)
        lines = fused(program.lines)
        saved += n_loops(program.lines) - n_loops(lines)
        try:
            same = map(np.array_equal, program.values(lines), program.values(program.lines))
            if not all(same):
                wrong.append(seed)
        except NameError:
            wrong.append(seed)
    return wrong, saved


def test_functions_return_the_same():
    wrong, saved = different()
    assert wrong == []
    assert saved > 300 * 3


@pytest.mark.parametrize(("of", "name"), [(fusion, "_by_entry"), (Step, "meets"), (Step, "writes")])
def test_broken_rules_are_found_out(monkeypatch, of, name):
    broken = {
        "_by_entry": lambda *_: True,
        "meets": lambda *_: set(),
        "writes": property(lambda self: set(), lambda self, value: None),
    }
    monkeypatch.setattr(of, name, broken[name], raising=False)
    assert different(range(100))[0]


def lines_of(text):
    return dedent(text).strip().split("\n")


def test_what_both_loops_work_out_stands_once():
    before = """
        n1 = x0.shape[0]
        n2 = x0.shape[1]
        a1 = np.empty((n1, ), np.float64)
        for i1 in range(n1):
            t1 = x0[i1, 0]
            t2 = (2.0 * t1)
            a1[i1] = t2
        s1 = 0.0
        for i2 in range(n1):
            t3 = x0[i2, 0]
            t4 = a1[i2]
            t5 = (t3 + t4)
            s1 = (t5 + s1)
        return s1
    """
    after = """
        n1 = x0.shape[0]
        a1 = np.empty((n1, ), np.float64)
        s1 = 0.0
        for i1 in range(n1):
            t1 = x0[i1, 0]
            t2 = (2.0 * t1)
            a1[i1] = t2
            t4 = a1[i1]
            t5 = (t1 + t4)
            s1 = (t5 + s1)
        return s1
    """
    assert fused(lines_of(before)) == lines_of(after)


def test_an_entry_that_was_changed_is_read_again():
    lines = lines_of("""
        for i1 in range(3):
            t1 = a1[i1]
            a1[i1] = (t1 + 1.0)
        for i2 in range(3):
            t2 = a1[i2]
            a2[i2] = t2
    """)
    joined = fused(lines)
    assert n_loops(joined) == 1
    assert "    t2 = a1[i1]" in joined


def test_no_loop_passes_a_check_that_depends_on_another():
    """It may be what keeps an index within bounds."""
    lines = lines_of("""
        s1 = 0
        for i1 in range(3):
            t1 = x0[i1]
            s1 = (t1 + s1)
        if s1 > 3: raise ValueError('wrong = wrong')
        for i2 in range(3):
            a1[i2] = 1.0
    """)
    assert fused(lines) == lines
