"""Compiled exchanges between two records that keep the known sums.

To the sweep's kernels, a pair is a record: it contributes to the sums, and a proposal changes its
contribution. So they decide on pairs one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor.tensor as pt
from pytensor.compile.mode import Mode
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.jit import JitFunction, numba_mode, with_parameter_checks
from pymc_dapper.graphs.prior import choose
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.records.compiled.op import FullSweep, MatrixRows, RecordSweep
from pymc_dapper.records.compiled.sweep import (
    contributions,
    density_of,
    density_of_sums,
    flat_records,
    log_density_of_records,
    lowered,
    separable,
)
from pymc_dapper.records.reading.exchanges import Exchange
from pymc_dapper.records.reading.model import ModelReading


@dataclass(frozen=True)
class CompiledExchange:
    """A sweep over pairs as a compiled function."""

    reading: ModelReading
    exchange: Exchange
    function: JitFunction
    """``function(*randomness, order, u, exponentials, *records, *parameters, *data) -> (*records,
    outcome)``. See :meth:`update`."""

    def update(
        self, rng: np.random.Generator, records: Sequence[np.ndarray], given: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, ...]:
        """Draw pairs, propose an exchange for each, and decide on them one by one.

        Returns the records, and an outcome that begins with the share of accepted exchanges; see
        :meth:`~pymc_dapper.records.compiled.sweep.CompiledSweep.update`.
        """
        noise = self.reading.randomness.draw(rng)
        order, n_pairs = self.exchange.draw_pairs(rng), self.exchange.n_pairs
        u, exponentials = rng.random(n_pairs), rng.standard_exponential(n_pairs)
        return self.function(*noise, order, u, exponentials, *records, *given)


def compile_exchange(
    reading: ModelReading, exchange: Exchange, options: dict[str, Any]
) -> CompiledExchange:
    """Compile the sweep over pairs of a model.

    The options are passed on to PyMC's ``compile``. The mode must be one of numba's.
    """
    mode = numba_mode(options.get("mode"))
    proposed, drawn, updated, outcome = exchange_graph(reading, exchange, mode)
    inputs = [*reading.randomness.inputs, *drawn, *reading.records]
    inputs += [*reading.parameters, *reading.data.values()]
    from_proposals = dict(zip(proposed, reading.proposals, strict=True))
    outputs = rebuild([*updated, outcome], from_proposals)
    function = JitFunction(inputs, outputs, reading.model, options)
    return CompiledExchange(reading, exchange, function)


def exchange_graph(
    reading: ModelReading, exchange: Exchange, mode: Mode
) -> tuple[list[TensorVariable], list[TensorVariable], Sequence[TensorVariable], TensorVariable]:
    """Build the graph of a sweep over pairs, in terms of the reading's records and parameters.

    Returns variables for proposals of all records; further inputs; the records after the sweep; and
    the share of accepted exchanges with the log-density of all factors. The inputs are ``order``,
    ints of shape (n,), all records, first the pairs, side by side; and, for each pair, a uniform
    number and an exponential variate, used as in the sweep over records.
    """
    n_pairs, records = exchange.n_pairs, list(reading.records)
    proposed = [x.type(name=f"{x.name}_proposed") for x in records]
    order = pt.tensor("order", dtype="int64", shape=(reading.n_records,))
    names = ("u", "exponentials")
    u, exponentials = (pt.tensor(name, dtype="float64", shape=(n_pairs,)) for name in names)
    first, second = order[0 : 2 * n_pairs : 2], order[1 : 2 * n_pairs : 2]
    change = exchange.propose(records, proposed, first, second, u)
    to_changed: dict[Variable, Variable] = dict(zip(records, change.records, strict=True))

    def before_and_after(graph: TensorVariable) -> list[TensorVariable]:
        return [graph, *rebuild([graph], to_changed)]

    log_removed, log_added = change.log_present, change.log_proposed
    of_records = before_and_after(separable(reading))
    if reading.separable_factors and not reading.proposes_conditionally:
        pairs = zip((log_removed, log_added), of_records, strict=True)
        log_removed, log_added = (log + each[first] + each[second] for log, each in pairs)

    mode = with_parameter_checks(mode, reading.model)
    if reading.full_factors:
        # A row of the state holds two records; the last row may repeat the first record.
        padded = pt.concatenate([order, order[:1]])[: 2 * ((reading.n_records + 1) // 2)]
        place = pt.zeros_like(order)
        place = pt.set_subtensor(place[order], pt.arange(reading.n_records))
        flat = before_and_after(flat_records(reading))
        width = flat[0].type.shape[1]
        before, after = (x[padded].reshape((-1, 2 * width)) for x in flat)
        state: TensorVariable = pt.matrix("records", dtype="float64")
        in_order = state.reshape((-1, width))[place]
        density = density_of(state, log_density_of_records(reading, in_order), mode)
        sweep: FullSweep | RecordSweep = FullSweep(density.graph)
    else:
        # All records that aren't in a pair form one more row.
        others = order[2 * n_pairs :]
        each_row = before_and_after(contributions(reading.sums))
        rest = each_row[0][others].sum(axis=0, keepdims=True)
        before, after = (pt.concatenate([x[first] + x[second], rest]) for x in each_row)
        density = density_of_sums(reading, mode)
        sweep = RecordSweep(density.graph, MatrixRows(before.type.shape[1] or 0))
    n_rest = before.shape[0] - n_pairs
    own = lowered(-exponentials, log_removed, log_added)
    thresholds = pt.concatenate([own, pt.zeros(n_rest)])
    accepted, log_density = density.decide(sweep, thresholds, before, after)
    accepted = accepted[:n_pairs]
    changed = pt.zeros(reading.n_records, dtype="bool")
    changed = pt.set_subtensor(changed[first], accepted)
    changed = pt.set_subtensor(changed[second], accepted)
    if reading.separable_factors:
        log_density = log_density + pt.switch(changed, of_records[1], of_records[0]).sum()
    updated = choose(changed, change.records, records)
    share = accepted.sum(dtype="float64") / max(1, n_pairs)
    return proposed, [order, u, exponentials], updated, pt.stack([share, log_density])
