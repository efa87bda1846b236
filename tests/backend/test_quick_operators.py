import operator
from itertools import product

import pytest
from numba import types
from numba.core.registry import cpu_target
from numba.core.typing.npydecl import NumpyRulesArrayOperator, NumpyRulesUnaryArrayOperator

from pymc_dapper.backend.quick_operators import OF_ARRAYS, of_arrays

KINDS = [
    types.float64,
    types.int64,
    types.boolean,
    types.Optional(types.float64),
    types.unicode_type,
    types.UniTuple(types.float64, 2),
    types.float64[::1],
    types.Optional(types.float64[:, ::1]),
]


@pytest.mark.parametrize("operation", [operator.add, operator.lt, operator.pow, operator.mul])
def test_operators_of_two_are_told_apart_as_numba_does(operation):
    template = type("Template", (NumpyRulesArrayOperator,), {"key": operation})
    asked, answers = template(cpu_target.typing_context), []
    for kinds in product(KINDS, KINDS):
        answers.append(OF_ARRAYS(asked, kinds, {}))
        assert of_arrays(asked, kinds, {}) == answers[-1]
    assert any(answers)
    assert answers[0] is None


def test_operators_of_one_are_told_apart_as_numba_does():
    template = type("Template", (NumpyRulesUnaryArrayOperator,), {"key": operator.neg})
    asked = template(cpu_target.typing_context)
    answers = [OF_ARRAYS(asked, (kind,), {}) for kind in KINDS]
    assert [of_arrays(asked, (kind,), {}) for kind in KINDS] == answers
    assert any(answers)
