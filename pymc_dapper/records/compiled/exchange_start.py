"""Find records that have the totals that are known."""

from collections.abc import Sequence

import numpy as np
import pytensor.tensor as pt
from pytensor.graph.basic import Variable

from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.records.compiled.sweep import contributions
from pymc_dapper.records.reading.exchanges import ByShift, Exchange
from pymc_dapper.records.reading.model import ModelReading

SWEEPS = 100
"""So many proposals for each record are looked at. Each that brings the totals nearer is taken."""


class ExchangeStart:
    """Changes records, as few as is easily done, so that they have the known totals."""

    def __init__(self, reading: ModelReading, exchange: Exchange):
        self._reading, self._exchange = reading, exchange
        matrix = pt.constant(exchange.known.matrix)
        records, proposals = list(reading.records), list(reading.proposals)
        given = [*records, *reading.parameters]
        rows = contributions(reading) @ matrix.T
        to_proposals: dict[Variable, Variable] = dict(zip(records, proposals, strict=True))
        change = rebuild([rows], to_proposals)[0] - rows
        missing = rows.sum(axis=0) + exchange.known.offset
        possible = pt.ones(reading.n_records, dtype="bool")
        if reading.possible is not None:
            [possible] = rebuild([reading.possible], to_proposals)
        outputs = [missing, change, possible, *proposals]
        inputs = [*reading.randomness.inputs, *given]
        self._look = compile_in_python(reading.model, inputs, outputs)
        if isinstance(exchange, ByShift):
            naturals = exchange.space.naturals(records)
            shifts = [x.type.clone(dtype="float64")() for x in naturals]
            moved = exchange.space.to_records(
                [(x + shift).astype(x.dtype) for x, shift in zip(naturals, shifts, strict=True)]
            )
            log_prior = exchange.space.log_prior(moved)
            self._shift = compile_in_python(reading.model, [*shifts, *given], [*moved, log_prior])

    def __call__(
        self,
        rng: np.random.Generator,
        records: Sequence[np.ndarray],
        parameters: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        """Return records that have the known totals, or come near."""
        records = [x.copy() for x in records]
        for _ in range(SWEEPS):
            noise = self._reading.randomness.draw(rng)
            missing, change, possible, *proposals = self._look(*noise, *records, *parameters)
            if self._is_known(missing):
                break
            useful = possible & np.all(np.isfinite(change), axis=1) & np.any(change != 0, axis=1)
            taken = []
            for i in rng.permutation(np.flatnonzero(useful)):
                if np.abs(missing + change[i]).sum() < np.abs(missing).sum():
                    missing = missing + change[i]
                    taken.append(i)
                    if self._is_known(missing):
                        break
            for x, new in zip(records, proposals, strict=True):
                x[taken] = new[taken]
            if isinstance(self._exchange, ByShift) and not self._is_known(missing):
                records = self._shifted(rng, self._exchange, missing, records, parameters)
        return records

    def _is_known(self, missing: np.ndarray) -> bool:
        known = self._exchange.known.tolerances
        return bool(np.all(np.where(known > 0, np.abs(missing) < known, missing == 0)))

    def _shifted(
        self,
        rng: np.random.Generator,
        exchange: ByShift,
        missing: np.ndarray,
        records: list[np.ndarray],
        parameters: Sequence[np.ndarray],
    ) -> list[np.ndarray]:
        """Let a record of each group make up for all that is missing, if it can."""
        order = rng.permutation(len(exchange.groups))
        groups, first = np.unique(exchange.groups[order], return_index=True)
        chosen = order[first[groups >= 0]]
        slopes = exchange.slopes * exchange.scales[chosen][:, None, None]
        n_entries = slopes.shape[1]
        flat = slopes.reshape(-1, slopes.shape[-1])
        needed = np.linalg.lstsq(flat.T, -missing, rcond=None)[0].reshape(-1, n_entries)
        shifts, start = [], 0
        for x, shifted in zip(records, exchange.shifted, strict=True):
            shift = np.zeros((len(x), *shifted.shape))
            stop = start + int(shifted.sum())
            block = np.zeros((len(chosen), *shifted.shape))
            block[:, shifted] = needed[:, start:stop]
            shift[chosen] = block if x.dtype.kind == "f" else np.round(block)
            shifts.append(shift)
            start = stop
        *moved, log_prior = self._shift(*shifts, *records, *parameters)
        if all(np.all(np.isfinite(x[chosen])) for x in (*moved, log_prior)):
            for x, new in zip(records, moved, strict=True):
                x[chosen] = new[chosen]
        return records
