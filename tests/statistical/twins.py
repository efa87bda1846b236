"""Steps with one fault each, put into a step that is already compiled.

Faults inside the kernel are in `tests.broken`; these are in what is proposed, and in what the
decisions on it are told.
"""

import copy
from dataclasses import replace
from functools import partial

from pymc_dapper.backend.jit import JitFunction
from tests.sweep_parts import parts_of


def with_propose(step, fault, function=JitFunction):
    """A copy of a step that proposes by `fault(propose, rng, *given)`."""
    parts = parts_of(step, function)
    return _with(step, replace(parts, propose=partial(fault, parts.propose)))


def with_decide(step, fault, function=JitFunction):
    """A copy of a step that decides by `fault(decide, records, proposals, log_uniforms, given)`."""
    n, parts = len(step.vars), parts_of(step, function)

    def faulty(*arguments):
        records, proposals = arguments[:n], arguments[n : 2 * n]
        log_uniforms, *given = arguments[2 * n :]
        return fault(parts.decide, list(records), list(proposals), log_uniforms, given)

    return _with(step, replace(parts, decide=faulty))


def with_half_the_log_ratio(step):
    """A copy of a step that decides by half the log ratio."""

    def half(decide, records, proposals, log_uniforms, given):
        # A proposal is accepted if the ratio is above the logarithm of a uniform variate.
        return decide(*records, *proposals, 2 * log_uniforms, *given)

    return with_decide(step, half)


def _with(step, parts):
    twin = copy.copy(step)
    twin.sweep = parts
    # Nor may the step itself notice: it is for the test to tell.
    twin._check_digits = lambda *_: None
    return twin
