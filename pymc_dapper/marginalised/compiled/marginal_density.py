"""From a reading of counts to compiled sums over them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytensor
import pytensor.tensor as pt
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.jit import JitFunction
from pymc_dapper.counts.compiled.op import Places
from pymc_dapper.counts.compiled.sweep import context_of, layout_of, term_function
from pymc_dapper.counts.reading.description import name_cells
from pymc_dapper.counts.reading.start import PossibleStart
from pymc_dapper.graphs.errors import NotMarginalisableError, ReadingError
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.marginalised.compiled.op import SumCounts
from pymc_dapper.marginalised.kernels.count_tables import (
    ANCHOR,
    FAULT,
    IMPOSSIBLE,
    NOT_CONCAVE,
    TOO_WIDE,
)
from pymc_dapper.marginalised.reading.model import MarginalisedModel, refused

LARGEST_TABLES = 2**24
"""Numbers in all tables, at most: two for each count, which a sum takes some nanoseconds for."""


@dataclass(frozen=True)
class CompiledSums:
    """Compiled sums over counts, with the log-density that they are a part of.

    Attributes
    ----------
    log_density : TensorVariable
        The model's log-density with the counts marginalised, from which PyMC's NUTS makes its
        function.
    tables : list of SharedVariable
        The tables that it depends on: what the kernel's `tabulate` returns.
    """

    reading: MarginalisedModel
    log_density: TensorVariable
    tables: list[SharedVariable]
    _tabulate_or_draw: JitFunction

    def tabulate(self, counts: np.ndarray, given: Sequence[np.ndarray]) -> np.ndarray:
        """Tabulate the weights of counts, for all later sums and draws.

        Parameters
        ----------
        counts : ndarray of int64, shape (number of counts,)
            Counts. Returned unchanged, or replaced by nearby ones that make the release possible.
        given : sequence of ndarray
            Parameters, and the values of the shared data.

        Raises
        ------
        NotMarginalisableError
            If noise isn't log-concave or leaves too much open, or the counts aren't possible.
        """
        tables = self._tables(counts, given)
        if np.any(tables[0][:, FAULT] == IMPOSSIBLE):
            noise = self.reading.noise
            data = given[len(self.reading.parameters) :][: len(noise.data)]
            found = PossibleStart(noise)(counts, np.zeros(0), data)
            counts = counts if found is None else found
            tables = self._tables(counts, given)
        faults = tables[0][:, FAULT]
        if faults.any():
            raise self._at_fault(faults)
        if 2 * tables[1].size > LARGEST_TABLES:
            raise refused(
                name_cells(self.reading.noise, faults == 0),
                "noise leaves too many of their values possible to sum over each time",
            )
        for shared, table in zip(self.tables, tables, strict=True):
            shared.set_value(table, borrow=True)
        return counts

    def _tables(self, counts: np.ndarray, given: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        empty = [table.get_value(borrow=True)[:0] for table in self.tables]
        return self._tabulate_or_draw(np.empty(0), counts, *empty, *given)[:3]

    def _at_fault(self, faults: np.ndarray) -> ReadingError:
        names = name_cells(self.reading.noise, faults == faults.max())
        factors = ", ".join(f"'{name}'" for name in self.reading.factors)
        if faults.max() == TOO_WIDE:
            return refused(names, f"{factors} leaves too many of their values possible to sum over")
        if faults.max() == NOT_CONCAVE:
            return refused(
                names, f"the log-density of {factors} isn't concave in them, and may have two peaks"
            )
        return NotMarginalisableError(
            f"the counts {names} can't be marginalised: the log-density of {factors} is -inf or "
            "nan where the chain starts, and a search found no counts where it is finite. Give a "
            "start that fits, as initval= of the variable"
        )

    def draw(
        self, rng: np.random.Generator, given: Sequence[np.ndarray]
    ) -> tuple[np.ndarray, float]:
        """Draw all counts given the parameters; return the log-probability of the draw, too."""
        uniforms = rng.random(self.reading.noise.n_cells)
        tables = [table.get_value(borrow=True) for table in self.tables]
        none = np.empty(0, dtype=np.int64)
        *_, counts, log_probability = self._tabulate_or_draw(uniforms, none, *tables, *given)
        return counts, log_probability.item()


def compile_sums(reading: MarginalisedModel, options: dict[str, Any]) -> CompiledSums:
    """Compile the sums over a model's counts.

    Parameters
    ----------
    reading : MarginalisedModel
        The reading of the model.
    options : dict
        Passed on to PyMC's ``compile``. The mode must be one of numba's.
    """
    structure = layout_of(reading.noise)
    functions = tuple(term_function(terms) for terms in reading.noise.terms)
    slopes = np.zeros(structure.terms.size)
    slopes[structure.rows] = structure.coefficients
    terms = structure.terms[structure.rows]
    of_terms = np.zeros(slopes.size), structure.kinds, structure.first, structure.contexts
    noise = Places(structure.starts, terms, slopes, *of_terms)
    fixed = [context_of(reading.noise), *map(pt.constant, noise)]

    def sums_of(*given: Variable) -> list[TensorVariable]:
        return SumCounts(functions)(reading.naturals, *given, reading.largest, *fixed)

    # Not constants, which are other types to numba: NUTS and draws share what is compiled. Inputs
    # that NUTS takes by name from points must keep their length.
    none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
    empty = np.empty((0, 7), dtype=np.int64), nothing, nothing
    uniforms, counts, *tables = (
        pytensor.shared(x, shape=(None,) * x.ndim) for x in (nothing, none, *empty)
    )
    log_sums = sums_of(uniforms, counts, *tables)[3]
    [at_anchors] = rebuild([reading.log_density], {reading.anchors: tables[0][:, ANCHOR]})
    [log_density] = reading.view.in_model([at_anchors + log_sums.sum()])

    inputs = [pt.dvector("uniforms"), pt.lvector("counts"), *(x() for x in SumCounts.tables)]
    *tabulated, _, _, drawn, log_probabilities = sums_of(*inputs)
    given = [*inputs, *reading.parameters, *reading.data.values()]
    outputs = [*tabulated, drawn, log_probabilities.sum()]
    return CompiledSums(
        reading=reading,
        log_density=log_density,
        tables=tables,
        _tabulate_or_draw=JitFunction(given, outputs, reading.model, options),
    )
