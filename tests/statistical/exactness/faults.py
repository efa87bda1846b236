"""Samplers with one fault each, made of a compiled one.

A fault in what is decided is put around the compiled sweep: that is called for one record at a
time, which is what the loop inside it does, but for the fault.
"""

from unittest.mock import patch

import numpy as np
from pymc import NUTS

import pymc_dapper.steps.conditional_nuts as conditional
from pymc_dapper import ConjugateStep
from tests.statistical.twins import with_decide, with_propose

FAULTS = {}
"""Name of a fault to a function that makes a faulty sampler of a sampler; None where the fault
can't be made, as there is nothing to get wrong."""


def fault(name):
    def register(make):
        FAULTS[name] = make
        return make

    return register


class Late:
    """Hands over the parameters that were present before the present ones."""

    def __init__(self, step):
        self.n = len(step._given.names)
        self.before = self.now = None

    def __call__(self, given):
        parameters, data = list(given[: self.n]), list(given[self.n :])
        if self.now is None or any(map(np.any, map(np.not_equal, parameters, self.now))):
            self.before, self.now = self.now or parameters, [x.copy() for x in parameters]
        return [*self.before, *data]


def _decide_one(decide, i, records, proposals, log_uniforms, given):
    """Whether the i-th proposal would be accepted."""
    only = np.full(len(log_uniforms), np.inf)
    only[i] = log_uniforms[i]
    return bool(decide(*records, *proposals, only, *given)[-2][i])


def _chosen(accepted, records, proposals):
    rows = (accepted.reshape(-1, *[1] * (x.ndim - 1)) for x in records)
    return [np.where(k, new, old) for k, new, old in zip(rows, proposals, records, strict=True)]


def _with_decide(sampler, decide):
    return sampler.with_steps([with_decide(sampler.dapper, decide), *sampler.steps[1:]])


@fault("stale cached sum")
def stale(sampler):
    """Each decision sees the sums as they were before the sweep."""
    if not sampler.case.interacts:
        return None

    def decide(decide, records, proposals, log_uniforms, given):
        accepted = np.array(
            [
                _decide_one(decide, i, records, proposals, log_uniforms, given)
                for i in range(len(log_uniforms))
            ]
        )
        return *_chosen(accepted, records, proposals), accepted, 0.0

    return _with_decide(sampler, decide)


@fault("acceptance ratio upside down")
def upside_down(sampler):
    if not sampler.case.decides:
        return None

    def decide(decide, records, proposals, log_uniforms, given):
        accepted = np.zeros(len(log_uniforms), dtype=bool)
        for i in range(len(accepted)):
            this = np.arange(len(accepted)) == i
            moved = _chosen(this, records, proposals)
            accepted[i] = _decide_one(decide, i, moved, records, log_uniforms, given)
            if accepted[i]:
                records = moved
        return *records, accepted, 0.0

    return _with_decide(sampler, decide)


@fault("one record skipped")
def skipped(sampler):
    """The loop ends one record too early."""
    if sampler.case.interweave:
        return None  # InterweaveStep moves all records: what the loop leaves out isn't a fault

    def decide(decide, records, proposals, log_uniforms, given):
        n_records = len(records[0])
        last = np.arange(n_records) == n_records - 1
        kept = _chosen(last, proposals, records)
        return decide(*records, *kept, log_uniforms, *given)

    return _with_decide(sampler, decide)


@fault("proposal from the wrong theta")
def wrong_theta(sampler):
    """Proposals come from the parameters of the iteration before."""
    if set(sampler.dapper._given.names) <= {"theta"}:
        return None  # these records' prior has no parameters
    late = Late(sampler.dapper)

    def propose(propose, rng, *given):
        return propose(rng, *late(given))

    twin = with_propose(sampler.dapper, propose)
    return sampler.with_steps([twin, *sampler.steps[1:]])


@fault("t_i at the old theta")
def old_theta(sampler):
    """Contributions to the sums come from the parameters of the iteration before."""
    if "theta" not in sampler.dapper._given.names:
        return None  # no contribution depends on a parameter
    late = Late(sampler.dapper)

    def decide(decide, records, proposals, log_uniforms, given):
        return decide(*records, *proposals, log_uniforms, *late(given))

    return _with_decide(sampler, decide)


@fault("missing Jacobian, records")
def missing_jacobian_of_records(sampler):
    """The prior is taken for one of the transformed record, and its ratio doesn't cancel."""
    model = sampler.model
    if all(model.rvs_to_transforms[model[name]] is None for name in sampler.case.records):
        return None

    def decide(decide, records, proposals, log_uniforms, given):
        [old], [new] = records, proposals
        return decide(old, new, log_uniforms + (new - old), *given)

    return _with_decide(sampler, decide)


@fault("missing Jacobian, NUTS")
def missing_jacobian_of_parameters(sampler):
    """NUTS moves log(x) by the density of x, without the Jacobian."""
    *others, last = sampler.steps
    if not isinstance(last, NUTS):
        return None
    complete = conditional.dependent_factors

    def without_jacobian(model, values):
        return complete(model, values, jacobian=False)

    with patch.object(conditional, "dependent_factors", without_jacobian):
        nuts = conditional.conditional_nuts(last.vars, sampler.model)
    return sampler.with_steps([*others, nuts]).tune(np.random.default_rng(1))


class _GivenOldRecords:
    """A ConjugateStep that is handed the records of the iteration before."""

    def __init__(self, conjugate, names):
        self._conjugate, self._names = conjugate, names
        self._before = None

    def __getattr__(self, name):
        return getattr(self._conjugate, name)

    def step(self, point):
        now = {name: point[name] for name in self._names}
        drawn, stats = self._conjugate.step({**point, **(self._before or now)})
        self._before = now
        return {**drawn, **now}, stats


@fault("theta given the old records")
def old_records(sampler):
    """Parameters are drawn given the records as they were before the sweep."""
    names = sampler.dapper._record_names
    return sampler.with_steps(
        _GivenOldRecords(step, names) if isinstance(step, ConjugateStep) else step
        for step in sampler.steps
    )
