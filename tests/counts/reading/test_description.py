"""What is said of how a model of counts was read."""

import numpy as np
import pymc as pm

from pymc_dapper.counts.reading.description import describe_counts, name_cells, summarise_counts
from pymc_dapper.counts.reading.invariant import invariant
from pymc_dapper.counts.reading.moves import find_moves
from tests.counts.systems import read


def small_model():
    with pm.Model() as model:
        n = pm.Poisson("n", 20.0)
        x = pm.Multinomial("x", n=n, p=np.ones(3) / 3)
        invariant("of_two", x[:2].sum(), 9)
        pm.Normal("sums", x, 2.0, observed=np.ones(3))
        pm.Potential("distance", -pm.math.sqrt((x**2).sum()))
    return read(model, "n", "x")


def test_cells_terms_totals_and_moves_are_listed():
    reading = small_model()
    assert reading.known.factors == ("of_two",)
    known = reading.known.matrix
    moves = find_moves(known, [], reading.bounded_cells(), ["of_two"], totals=reading.totals)
    lines = describe_counts(reading, moves).splitlines()
    assert lines[:3] == ["4 cells:", "  n  ()  Poisson", "  x  (3,)  Multinomial"]
    assert any(line.startswith("  distance: ") and "Sqrt" in line for line in lines)
    at = lines.index("Latent totals, which follow from the cells that they add up:")
    assert lines[at + 1] == "  'n'"
    assert "  of_two: 1 total" in lines
    assert "  1 exchanges between two cells, within 1 group" in lines
    assert "  1 cell, each by itself" in lines
    [tree] = [line for line in lines if line.startswith("Not on a tree: 'distance' isn't a sum")]
    assert lines.index(tree) == lines.index("A sweep:") - 1


def test_one_line_names_the_counts_and_what_sees_them():
    assert summarise_counts(small_model()) == "4 cells of n, x; sums, of_two, distance"


def test_cells_are_named_by_variable():
    reading = small_model()
    assert name_cells(reading, np.array([True, False, True, False])) == "'n', 'x' at [1]"
    assert name_cells(reading, np.array([False, True, True, True])) == "'x'"
