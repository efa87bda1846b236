"""Operations that act entry by entry, on numbers."""

import numpy as np
import pytensor.tensor as pt
from pytensor import scalar as ps
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.tensor.elemwise import Elemwise

from pymc_dapper.backend.entries import CellOf, EntryOf, LookUp, performed


class Doubled(Op):
    """An operation that acts on each entry by itself."""

    __props__ = ()

    def make_node(self, x):
        return Apply(self, [x], [x.type()])

    def perform(self, node, inputs, output_storage):
        output_storage[0][0] = 2 * inputs[0]


MATRIX = pt.matrix("x", dtype="int64")


def test_a_number_takes_the_place_of_an_array_of_one():
    op = EntryOf(Doubled(), (MATRIX.type,))
    assert op.impl(21) == 42
    output = op(ps.int64("n"))
    assert output.type.dtype == "int64"


def test_operations_on_the_same_types_are_the_same():
    op = EntryOf(Doubled(), (MATRIX.type,))
    same, other = EntryOf(Doubled(), (MATRIX.type,)), EntryOf(Doubled(), (pt.dvector().type,))
    assert op == same
    assert hash(op) == hash(same)
    assert op != other


def test_a_node_is_evaluated_in_python():
    node = Doubled()(MATRIX).owner
    np.testing.assert_array_equal(performed(node, [np.array([[1, 2]])]), [[2, 4]])


def test_an_entry_is_looked_up_by_its_indices():
    table = np.array([[1.0, 2.0], [3.0, -np.inf]])
    i, j = pt.lvectors("i", "j")
    entries = Elemwise(LookUp(table))(i, j)
    at = entries.eval({i: [0, 1, 1], j: [1, 0, 1]}, mode="FAST_COMPILE")
    np.testing.assert_array_equal(at, [2.0, 3.0, -np.inf])
    same, other = LookUp(table.copy()), LookUp(table + 1)
    assert LookUp(table) == same != other
    assert hash(LookUp(table)) == hash(same)


def test_a_cell_is_found_by_the_cuts_that_are_not_above():
    cuts, x = np.array([0.0, 1.0, 4.0]), pt.dvector("x")
    cells = Elemwise(CellOf(cuts))(x)
    given = [-1.0, 0.0, 0.5, 1.0, np.nextafter(4.0, 0), 4.0, np.inf, np.nan]
    assert cells.eval({x: given}, mode="FAST_COMPILE").tolist() == [0, 1, 1, 2, 2, 3, 3, 3]
    gradient = pt.grad(cells.astype("float64").sum(), x, disconnected_inputs="ignore")
    np.testing.assert_array_equal(gradient.eval({x: given}, mode="FAST_COMPILE"), np.zeros(8))
    assert CellOf(cuts) == CellOf(cuts.copy()) != CellOf(cuts + 1)
    assert CellOf(cuts) != LookUp(cuts)
