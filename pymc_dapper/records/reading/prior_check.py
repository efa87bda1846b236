"""A numerical check that the records' prior doesn't couple records.

A prior may contain what the walk through its parameters can't see, such as a ``CustomDist`` of a
cumulative sum. So its density and its draws are tested from outside.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from pytensor.graph import Constant, Variable, ancestors, explicit_graph_inputs
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.subtensor import AdvancedSubtensor

from pymc_dapper.graphs.errors import FAILURES, ReadingError
from pymc_dapper.graphs.evaluation import agree, choose_rows, compile_in_python, rounding
from pymc_dapper.graphs.rebuild import dependent_variables, rebuild
from pymc_dapper.records.reading.model import ModelReading

NUMBERS_CHANGED = 8
"""Places at which random numbers are changed, one after another."""


class PriorCheck:
    """The records' prior, as functions of the records and of noise."""

    def __init__(self, reading: ModelReading):
        self._reading = reading
        self._log_priors = reading.in_python(reading.log_priors)
        self._tolerance = rounding(reading.records, reading.log_priors)
        # The graph of draws is cut at its random numbers, which become inputs.
        nodes = io_toposort([], list(reading.proposals))
        drawn = [node.outputs[1] for node in nodes if isinstance(node.op, RandomVariable)]
        noise = [each.variable for each in reading.randomness.noise]
        self._numbers: list[Variable] = [*noise, *drawn]
        given = {x: x.type() for x in self._numbers}
        self._draw_numbers = reading.in_python(self._numbers, reading.randomness.inputs)
        proposals = rebuild(reading.proposals, given)
        self._from_numbers = reading.in_python(proposals, list(given.values()))

    def check(
        self,
        first: Sequence[np.ndarray],
        second: Sequence[np.ndarray],
        which: np.ndarray,
        parameters: Sequence[np.ndarray],
    ) -> None:
        """Check that the density is a product over records.

        The joint density of two states must stay the same if they exchange some records (``which``,
        shape (n,)). The message names the record variable.
        """
        exchanged = (choose_rows(which, second, first), choose_rows(which, first, second))
        with np.errstate(all="ignore"):
            states = (first, second, *exchanged)
            a, b, c, d = (np.array(self._log_priors(*state, *parameters)) for state in states)
            known = np.isfinite(a + b)
            same = agree(c + d, a + b, self._tolerance, abs(a) + abs(b))
        for k in np.flatnonzero(~known)[: len(self._reading.record_names)]:
            self._check_missing(k)
        for name, differ in zip(self._reading.record_names, known & ~same, strict=False):
            if differ:
                raise _tied(name, "the density of one record changes with the value of another")

    def _check_missing(self, k: int) -> None:
        """Refuse a nan among what a prior is made of, if its own draws have no finite density."""
        view, log_prior = self._reading.view, self._reading.log_priors[k]
        data = {stand_in: shared.get_value(borrow=True) for shared, stand_in in view.data.items()}
        for x in ancestors([log_prior]):
            values = x.data if isinstance(x, Constant) else data.get(x)
            if missing := _missing(x, values):
                raise ReadingError(
                    f"the prior of '{self._reading.record_names[k]}' has no value at its own "
                    f"draws: it is computed from {missing}. If a covariate is missing, leave its "
                    "record out, or give it a distribution: PyMC draws the masked entries of "
                    "observed=np.ma.masked_invalid(covariate)"
                )

    def check_draws(
        self,
        records: Sequence[np.ndarray],
        parameters: Sequence[np.ndarray],
        rng: np.random.Generator,
    ) -> None:
        """Check that no random number affects the draws of several records.

        If one does, the message names the record variable.
        """
        present = [*records, *parameters]
        try:
            draw = self._reading.randomness.draw
            numbers, others = (self._draw_numbers(*draw(each), *present) for each in rng.spawn(2))
        except FAILURES:  # any error of a distribution, at an impossible draw
            return

        def redrawn(which: Sequence[int], place: int) -> list[np.ndarray]:
            changed = [x.copy() if k in which else x for k, x in enumerate(numbers)]
            for k in which:
                changed[k].flat[place] = others[k].flat[place]
            return list(self._from_numbers(*changed, *present))

        drawn = self._from_numbers(*numbers, *present)
        for shape in dict.fromkeys(x.shape for x in numbers):
            which = [k for k, x in enumerate(numbers) if x.shape == shape]
            for place in rng.permutation(numbers[which[0]].size)[:NUMBERS_CHANGED]:
                # In all arrays of a shape at once, which mostly changes one record.
                each = [[k] for k in which] if self._tied_in(drawn, redrawn(which, place)) else ()
                for name in (self._tied_in(drawn, redrawn(k, place)) for k in each):
                    if name is not None:
                        raise _tied(name, "the draw of one record changes with that of another")

    def _tied_in(self, drawn: Sequence[np.ndarray], redrawn: Sequence[np.ndarray]) -> str | None:
        """Name the record variable up to which several records have changed; None if one has."""
        several = np.zeros(self._reading.n_records, dtype=bool)
        for name, a, b in zip(self._reading.record_names, drawn, redrawn, strict=True):
            differ = (a != b) & ~(np.isnan(a) & np.isnan(b))
            several |= differ.reshape(len(a), -1).any(axis=1)
            if np.count_nonzero(several) > 1:
                return name
        return None


def _tied(name: str, why: str) -> ReadingError:
    return ReadingError(
        f"the prior of '{name}' ties records together: {why}, the parameters given. Records must "
        "be independent given the parameters, so that each can be proposed by itself. Write what "
        "they are made of as the records: for a cumulative sum, its steps; for deviations from a "
        "mean, the values; or leave the variable to another step"
    )


def check_picked(reading: ModelReading) -> None:
    """Refuse a nan in a table of known numbers from which records pick.

    A record that picks it would count as impossible, without a message.
    """
    graphs = [*reading.log_priors, *(factor.as_written for factor in reading.factors)]
    of_records, data = dependent_variables(reading.records, graphs), {*reading.view.data.values()}
    for node in io_toposort([], graphs):
        table, *indices = node.inputs or [None]
        if not isinstance(node.op, AdvancedSubtensor) or of_records.isdisjoint(indices):
            continue
        if not set(explicit_graph_inputs([table])) <= data:
            continue
        [values] = compile_in_python(reading.model, [], [table])()
        if missing := _missing(table, values):
            raise ReadingError(
                f"the records {reading.quoted_names} pick from {missing}. Records that pick it "
                "would be impossible: put a number there, or leave that value out of the prior"
            )


def _missing(x: Variable, values: Any) -> str | None:
    """Describe known numbers, if there is a nan among them."""
    if not isinstance(values, np.ndarray) or values.dtype.kind != "f":
        return None
    if not len(at := np.argwhere(np.isnan(values))):
        return None
    name, first = f" ({x.name})" if x.name else "", tuple(at[0].tolist())
    return f"{values.size} known numbers{name} with nan, the first at {first}"
