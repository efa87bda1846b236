"""Cells of a study and their seeds."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from pymc_dapper.studies.grid import read_grid


def states(grid, replicates=2, seed=1):
    """The beginning of each cell's random numbers, by its settings and replicate."""
    return {
        str(cell): tuple(cell.seeds(seed).generate_state(4))
        for cell in read_grid(grid, replicates).cells
    }


def test_a_mapping_gives_all_combinations():
    read = read_grid({"epsilon": [0.1, 1, 10], "mechanism": ["a", "b"]}, 4)
    assert read.dims == {"epsilon": 3, "mechanism": 2, "replicate": 4}
    assert len(read.cells) == 24
    assert {cell.index for cell in read.cells} == set(np.ndindex(3, 2, 4))
    for cell in read.cells:
        for name, index in zip(read.dims, cell.index[:2], strict=False):
            assert read.coords[name][index] == cell.settings[name]
    # Those of a setting come in a row, so that a worker meets the same model again.
    assert [cell.replicate for cell in read.cells[:4]] == [0, 1, 2, 3]


def test_a_table_with_all_combinations_is_a_grid():
    levels = {"epsilon": [0.1, 1.0], "n": [10, 20]}
    rows = [{"epsilon": e, "n": n} for n in levels["n"] for e in levels["epsilon"]]
    for table in (rows, pd.DataFrame(rows)):
        read = read_grid(table, 1)
        assert read.dims == {"epsilon": 2, "n": 2, "replicate": 1}
        assert {cell.name: cell.index for cell in read.cells} == {
            cell.name: cell.index for cell in read_grid(levels, 1).cells
        }


def test_any_other_table_has_one_dim():
    read = read_grid([{"epsilon": 1, "n": 10}, {"n": 20, "epsilon": 2.5}], 3)
    assert read.dims == {"cell": 2, "replicate": 3}
    assert read.coords["epsilon"] == ("cell", [1.0, 2.5])
    assert [cell.index for cell in read.cells[2:4]] == [(0, 2), (1, 0)]


def test_settings_are_plain_python():
    read = read_grid({"n": np.array([10, 20]), "b": [np.True_], "x": np.array([0.5])}, 1)
    assert [type(value) for value in read.cells[0].settings.values()] == [int, bool, float]


def test_seeds_of_cells_differ_and_depend_on_the_study():
    seeds = states({"epsilon": [0.1, 1.0], "mechanism": ["a", "b"]})
    assert len(set(seeds.values())) == 8
    other = states({"epsilon": [0.1, 1.0], "mechanism": ["a", "b"]}, seed=2)
    assert not set(seeds.values()) & set(other.values())


def test_seeds_stay_when_a_grid_grows_or_is_written_in_another_way():
    """Catches seeds that depend on a cell's place in the grid."""
    small = states({"epsilon": [0.5, 1.0], "mechanism": ["a"]})
    large = states({"mechanism": ["b", "a"], "epsilon": [0.1, 1.0, 0.5]}, replicates=5)
    moved = {}
    for name, state in large.items():
        mechanism, epsilon, replicate = name.split(", ")
        moved[", ".join((epsilon, mechanism, replicate))] = state
    assert small.items() <= moved.items()
    # 1 and 1.0 are the same setting.
    assert list(states({"epsilon": [1]}).values()) == list(states({"epsilon": [1.0]}).values())
    assert states({"b": [True]}) != states({"b": [1]})


@pytest.mark.parametrize(
    ("grid", "replicates", "error", "message"),
    [
        ({}, 1, ValueError, "empty"),
        ({"epsilon": []}, 1, ValueError, "grid\\['epsilon'\\] is empty"),
        ({"epsilon": 1.0}, 1, TypeError, "must be a list"),
        ({"mechanism": "laplace"}, 1, TypeError, "must be a list"),
        ({"epsilon": [1.0, 1]}, 1, ValueError, "twice.*replicates="),
        ({"epsilon": [1.0, "1"]}, 1, TypeError, "all numbers .*, all bools or all strings"),
        ({"epsilon": [1, True]}, 1, TypeError, "all numbers .*, all bools or all strings"),
        ({"epsilon": [float("nan")]}, 1, TypeError, "numbers that an array has room for"),
        ({"epsilon": [[1], [2]]}, 1, TypeError, "numbers that an array has room for"),
        ({"epsilon": [[1], [2, 3]]}, 1, TypeError, "numbers that an array has room for"),
        ({"n": [2**64]}, 1, TypeError, "numbers that an array has room for"),
        ({"n": [2**63 + 1, -1]}, 1, TypeError, "numbers that an array has room for"),
        ({"n": [2**53 + 1, 0.5]}, 1, TypeError, "numbers that an array has room for"),
        ({"n": [Fraction(10**400)]}, 1, TypeError, "numbers that an array has room for"),
        ({"name": ["a", "\udcff"]}, 1, ValueError, r"grid\['name'\]: '\\udcff' can't be printed"),
        ([{"name": "a\0"}], 1, ValueError, "can't be printed: give another text"),
        ({"digest": [0.0]}, 1, ValueError, "means something else"),
        ({"coverage": [0.5]}, 1, ValueError, "means something else"),
        ({"budget": [object()]}, 1, TypeError, "give a string"),
        ({"mean": [0.0]}, 1, ValueError, "means something else"),
        ({"no name": [0.0]}, 1, ValueError, "argument"),
        ([], 1, ValueError, "no cells"),
        ([{"a": 1}, {"b": 1}], 1, ValueError, "must have the names \\['a'\\]"),
        ([{"a": 1}, {"a": 1}], 1, ValueError, "twice"),
        (3, 1, TypeError, "a mapping of names to lists"),
        ({"epsilon": [1.0]}, 0, ValueError, "replicates"),
        ({"epsilon": [1.0]}, 2.5, TypeError, "replicates"),
    ],
)
def test_refusals(grid, replicates, error, message):
    with pytest.raises(error, match=message):
        read_grid(grid, replicates)


@pytest.mark.filterwarnings("ignore:Warning. converting a masked element to nan:UserWarning")
def test_masked_values_are_refused():
    with pytest.raises(TypeError, match="all numbers that an array has room for"):
        read_grid({"epsilon": np.ma.masked_array([1, 2], [0, 1])}, 1)
