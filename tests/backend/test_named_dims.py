"""Tensors with named dimensions are recognised."""

import pymc as pm
import pymc.dims as pmdims
import pytensor.tensor as pt

from pymc_dapper.backend.named_dims import as_plain, has_named_dims, same_named


def test_tensors_of_named_dims_are_told_from_others():
    with pm.Model(coords={"cell": range(3)}):
        named, plain = pmdims.Normal("named", dims="cell"), pm.Normal("plain", dims="cell")
    assert has_named_dims(named)
    assert not has_named_dims(plain)
    assert not has_named_dims([1.0])
    assert as_plain(plain) is plain
    assert as_plain(named).type.ndim == 1


def test_variables_are_taken_by_name_in_the_order_wanted():
    here = [pt.scalar("a"), pt.scalar("b"), pt.scalar("c")]
    assert same_named(here, [pt.vector("c"), pt.vector("a")]) == [here[2], here[0]]
