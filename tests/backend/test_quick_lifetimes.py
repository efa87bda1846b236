import numpy as np
import pytest
from numba import njit, objmode
from numba.core import analysis

from pymc_dapper.backend.optimised_once import outermost

X = np.array([1.0, 2.0, 4.0])


def looped():
    @njit
    def total(x):
        found = 0.0
        for each in x:
            if each > 1:
                found += each
        return found

    return total


def in_turns():
    """A generator keeps what is alive where it yields."""

    @njit
    def halves(x):
        for each in x:
            half = each / 2
            yield half
            yield half + each

    @njit
    def total(x):
        found = 0.0
        for each in halves(x):
            found += each
        return found

    return total


def in_python():
    """What Python does takes over variables that are alive, and gives others back."""

    @njit
    def total(x):
        found, added = 0.0, 1.0
        for each in x:
            with objmode(more="float64"):
                more = float(each) + added
            found += more
        return found

    return total


@pytest.mark.parametrize("made", [looped, in_turns, in_python])
def test_functions_compute_what_numba_has_them_compute(made):
    assert outermost(made())(X) == made()(X)


def test_variables_that_are_alive_are_worked_out_more_rarely(monkeypatch):
    looped()(X)  # numba has compiled by now what it calls itself
    found, live = [], analysis.compute_live_variables

    def counted(function):
        found.clear()
        assert function(X) == 6
        return len(found)

    monkeypatch.setattr(
        analysis, "compute_live_variables", lambda *parts: (found.append(1), live(*parts))[1]
    )
    assert 2 * counted(outermost(looped())) < counted(looped())
