"""A sweep as two functions, so that a test can choose what is proposed, or put a fault into either.

Users run one function that does both. Whenever its parts are made here, they must do the same.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import graph_inputs

from pymc_dapper.backend.jit import JitFunction, numba_mode
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.records.compiled.sweep import AS_DRAWN, sweep_graph
from pymc_dapper.records.reading.plan import NothingToDecide
from tests.broken import in_place


@dataclass(frozen=True)
class SweepParts:
    """What takes the place of a `CompiledSweep`.

    `propose(rng, *given)` returns proposals, and `decide(*records, *proposals, log_uniforms,
    *given)` the records after the sweep, which proposals were accepted, and the log-density.
    `from_noise()` is the function of noise that `propose` calls.
    """

    from_noise: Callable
    propose: Callable
    decide: Callable
    n_decisions: int
    as_written: Any
    takes_records: bool = False
    """Whether proposals depend on the present records, which come last then."""

    def update(self, rng, records, given, n_present=None, by=AS_DRAWN):
        proposals = self.propose(rng, *given, *(records if self.takes_records else ()))
        n = self.n_decisions if n_present is None else n_present
        log_uniforms = -by * rng.standard_exponential(n)
        return self.after(records, proposals, log_uniforms, given)

    def after(self, records, proposals, log_uniforms, given):
        *records, accepted, logp = self.decide(*records, *proposals, log_uniforms, *given)
        return *records, np.array([np.mean(accepted), logp]), accepted


class PythonFunction:
    """A stand-in for `JitFunction` that compiles nothing."""

    def __init__(self, inputs, outputs, model, compile_kwargs):
        self.jitted = compile_in_python(model, inputs, outputs)

    def __call__(self, *arguments):
        return self.jitted(*arguments)


_of_steps: WeakKeyDictionary = WeakKeyDictionary()


def parts_of(step, function=JitFunction):
    """Take the sweep of a step apart; that of a twin made of parts is apart already."""
    if isinstance(step.sweep, SweepParts):
        return step.sweep
    made = _of_steps.setdefault(step, {})
    if function not in made:
        made[function] = take_apart(step._reading, step.sweep.as_written, function)
        _check_same(step, made[function])
    return made[function]


def broken_parts(reading, fault):
    """The parts of a sweep with a fault of `tests.broken`, in Python."""
    with in_place(fault):
        return take_apart(reading, function=PythonFunction)


def take_apart(reading, as_written=None, function=JitFunction):
    """Compile the parts of a sweep; the proposing part is compiled at its first call."""
    sweep = sweep_graph(reading, numba_mode(None))
    given = [*reading.parameters, *reading.data.values()]
    log_uniforms = pt.vector("log_uniforms", dtype="float64")
    options = {"model": reading.model, "compile_kwargs": {}}
    decided = [*sweep.updated, sweep.accepted, sweep.log_density]
    decide = function(
        [*reading.records, *sweep.proposed, log_uniforms, *given],
        rebuild(decided, {sweep.exponentials: -log_uniforms}),
        **options,
    )

    takes_records = not {*reading.records}.isdisjoint(graph_inputs(reading.proposals))

    @cache
    def from_noise():
        inputs = [*reading.randomness.inputs, *given, *(reading.records if takes_records else ())]
        return function(inputs, reading.proposals, **options)

    def propose(rng, *values):
        return from_noise()(*reading.randomness.draw(rng), *values)

    n_decisions = 0 if isinstance(reading.plan, NothingToDecide) else reading.n_records
    return SweepParts(from_noise, propose, decide, n_decisions, as_written, takes_records)


def _check_same(step, apart):
    """Check that the parts do what the whole does."""
    point = step._reading.model.initial_point()
    records, given, n = step._records(point), step._given(point), len(step.vars)
    for seed in range(5):
        whole = step.sweep.update(np.random.default_rng(seed), records, given)
        rng = np.random.default_rng(seed)
        # In the order of the whole: a generator among the noise is drawn from last.
        noise = step._reading.randomness.draw(rng)
        log_uniforms = -rng.standard_exponential(apart.n_decisions)
        proposals = apart.from_noise()(*noise, *given, *(records if apart.takes_records else ()))
        parts = apart.after(records, proposals, log_uniforms, given)
        for a, b in zip(whole[:n], parts[:n], strict=True):
            # Compiled as one, the last digits may be rounded in another way.
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(whole[n], parts[n], rtol=1e-6, atol=1e-6)
        records = whole[:n]
