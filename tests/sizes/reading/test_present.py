"""Which rows are there, in readable form."""

import pymc as pm
import pymc.dims as pmdims
import pytensor.tensor as pt
import pytest

import pymc_dapper as pmd


def test_the_first_n_are_there():
    n = pt.lscalar("n")
    there = pmd.present(n, 4)
    assert there.type.dtype == "bool"
    assert there.type.ndim == 1
    values = [there.eval({n: k}, mode="FAST_COMPILE").tolist() for k in (0, 1, 4, 9)]
    assert values == [[False] * 4, [True] + [False] * 3, [True] * 4, [True] * 4]
    assert pmd.present(2, 3).eval(mode="FAST_COMPILE").tolist() == [True, True, False]


def test_a_number_may_be_one_of_named_dims():
    with pm.Model():
        n = pmdims.Data("n", 2)
    assert pmd.present(n, 3).eval(mode="FAST_COMPILE").tolist() == [True, True, False]


def test_what_is_no_number_of_records_is_refused():
    with pytest.raises(TypeError, match=r"'x' of type float64 .* scalar of whole numbers"):
        pmd.present(pt.dscalar("x"), 3)
    with pytest.raises(TypeError, match="with 1 axes"):
        pmd.present(pm.Poisson.dist(3, shape=2), 3)
    with pm.Model():
        n = pm.Poisson("n", [3, 4], shape=2)
        with pytest.raises(TypeError, match=r"entry of 'n'.*Give each group a number of its own"):
            pmd.present(n[1], 3)
        assert pmd.present(pm.Poisson("m", n[0]), 3).type.shape == (3,)
    with pytest.raises(ValueError, match="size"):
        pmd.present(pt.lscalar("n"), 0)
    with pytest.raises(TypeError, match="n"):
        pmd.present(2.5, 3)
