"""Comparisons of row numbers with a number of records, in many forms."""

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd
from pymc_dapper.assignment.latent import find_latent
from pymc_dapper.graphs.errors import ReadingError
from pymc_dapper.sizes.reading.flags import (
    at_flags,
    check_lengths,
    compares_an_entry,
    find_flags,
)

ROOM = 5
rows = pt.arange(ROOM)
PRESENT = {
    "arange < n": lambda n: rows < n,
    "n > arange": lambda n: n > rows,
    "arange <= n - 1": lambda n: rows <= n - 1,
    "n >= arange + 1": lambda n: n >= pt.arange(1, ROOM + 1),
    "constant": lambda n: np.arange(ROOM) < n,
    "floats": lambda n: pt.constant(np.arange(ROOM) + 0.5) < n,
    "column": lambda n: rows[:, None] < n,
    "twice": lambda n: 2 * rows < 2 * n,
}
ABSENT = {
    "arange >= n": lambda n: rows >= n,
    "n < arange + 1": lambda n: n < pt.arange(1, ROOM + 1),
}


def flags_of(graph, n):
    return list(find_flags([graph], n).values())


@pytest.mark.parametrize("form", [*PRESENT, *ABSENT])
def test_the_first_n_rows_are_found(form):
    n = pt.lscalar("n")
    graph = (PRESENT | ABSENT)[form](n)
    [flag] = flags_of(graph.astype("float64").sum(), n)
    assert (flag.n_rows, flag.absent) == (ROOM, form in ABSENT)
    there = pt.vector("there", dtype="bool", shape=(ROOM,))
    for k in range(ROOM + 2):
        expected = graph.eval({n: k}, mode="FAST_COMPILE")
        found = flag.of(there).eval({there: np.arange(ROOM) < k}, mode="FAST_COMPILE")
        np.testing.assert_array_equal(found, expected)


OTHERS = {
    "arange <= n": (lambda n: rows <= n, 4),
    "arange - 2 < n": (lambda n: rows - 2 < n, 5),
    "arange < 2 n": (lambda n: rows < 2 * n, 5),
    "arange < n - 1": (lambda n: rows < n - 1, 2),
    "arange < 2 n + 1": (lambda n: rows < 2 * n + 1, 5),
    "the last n": (lambda n: rows[::-1] < n, 3),
}


@pytest.mark.parametrize("form", OTHERS)
def test_other_rows_are_refused_with_what_to_write(form):
    write, true = OTHERS[form]
    n = pt.lscalar("n")
    told = rf"doesn't pick the first 'n' rows: at n = 3, .* true of {true} of 5 .*present\(n, 5\)"
    with pytest.raises(ReadingError, match=told):
        find_flags([write(n)], n)


@pytest.mark.usefixtures("uncompiled")
def test_numbers_of_rows_and_of_households_are_read():
    """The number of rows with a law of its own; and a row for each that several entries are of."""

    def write(number, shape, present):
        with pm.Model() as model:
            n = number()
            x = pm.Normal("x", pm.Normal("mu"), 1, shape=shape)
            total = pt.switch(present(n), x, 0).sum()
            pmd.LaplaceMechanism(1.0).potential("s", total, released=3.0)
        return [x.name for x in find_latent(model, None, None).sizes]

    def shifted():
        return pm.CustomDist(
            "n", dist=lambda size: 1 + pm.Poisson.dist(5, size=size), dtype="int64"
        )

    assert write(shifted, ROOM, lambda n: pmd.present(n, ROOM)) == ["n"]
    households = write(
        lambda: pm.Poisson("n", 2), (ROOM, 2), lambda n: pmd.present(n, ROOM)[:, None]
    )
    assert households == ["n"]


def test_other_comparisons_are_no_flags():
    n, k = pt.lscalar("n"), pt.lscalar("k")
    assert flags_of(rows < n + k, n) == []
    assert flags_of(pt.eq(rows, n), n) == []
    assert flags_of(n < 3, n) == []


@pytest.mark.parametrize(
    "first",
    [
        lambda x, n: x[:n],
        lambda x, n: x[pt.arange(n)],
        lambda x, n: x[pt.arange(ROOM) < n],
        lambda x, n: x[pt.nonzero(pt.arange(ROOM) < n)],
    ],
)
def test_arrays_of_length_n_are_refused(first):
    n, x = pt.lscalar("n"), pt.vector("x", shape=(ROOM,))
    with pytest.raises(ReadingError, match=r"length of an array depends on 'n'.*of x\[:n\]"):
        check_lengths([first(x, n).sum()], n)
    check_lengths([x[n] + x[1:].sum() + n * x[np.arange(ROOM) < 2].sum() + x[[n, 0]].sum()], n)


def test_a_comparison_with_an_entry_of_a_vector_is_found():
    n = pt.lvector("n")
    assert compares_an_entry([(rows < n[1]).sum()], n)
    assert not compares_an_entry([(n < 3).sum(), (rows < n[:, None]).sum()], n)


def test_what_has_no_say_is_left_out():
    x = pt.vector("x", shape=(3,))
    there = pt.vector("there", dtype="bool", shape=(3,))
    graphs = {
        "switch": pt.switch(there, x, 0),
        "product": there * x,
        "absent": pt.switch(~there, 0.0, x),
        "difference": (1 - (~there).astype("int8")) * x,
        "dot": pt.dot(there.astype("float64"), x),
        "cast": pt.cast(there, "float64") * pt.exp(x),
    }
    at = np.array([0.5, np.nan, -2.0])
    for name, graph in graphs.items():
        [without] = at_flags([graph], there, False)
        np.testing.assert_array_equal(without.eval(mode="FAST_COMPILE"), 0, err_msg=name)
        [within] = at_flags([graph], there, True)
        expected = graph.eval({x: at, there: np.ones(3, dtype=bool)}, mode="FAST_COMPILE")
        np.testing.assert_array_equal(within.eval({x: at}, mode="FAST_COMPILE"), expected)
    [seen] = at_flags([pt.switch(there, 0, x)], there, False)
    assert seen is x
