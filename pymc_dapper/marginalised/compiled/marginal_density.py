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
from pymc_dapper.marginalised.compiled.op import SumCounts, Tabulate
from pymc_dapper.marginalised.kernels.count_tables import IMPOSSIBLE, NOT_CONCAVE, TOO_WIDE
from pymc_dapper.marginalised.reading.model import MarginalisedModel, refused

MOST = 2**14
"""Counts that are tabulated to either side of the likeliest one, at most."""
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
        The tables that it depends on: what `tabulate` returns, but the faults.
    """

    reading: MarginalisedModel
    log_density: TensorVariable
    tables: list[SharedVariable]
    _tabulate: JitFunction
    _draw: JitFunction

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
        data = given[len(self.reading.parameters) :]
        *tables, faults = self._tabulate(counts, *data)
        if np.any(faults == IMPOSSIBLE):
            noise = self.reading.noise
            found = PossibleStart(noise)(counts, np.zeros(0), data[: len(noise.data)])
            counts = counts if found is None else found
            *tables, faults = self._tabulate(counts, *data)
        if faults.any():
            raise self._at_fault(faults)
        if 2 * tables[-1].size > LARGEST_TABLES:
            raise refused(
                name_cells(self.reading.noise, faults == 0),
                "noise leaves too many of their values possible to sum over each time",
            )
        for shared, table in zip(self.tables, tables, strict=True):
            shared.set_value(table, borrow=True)
        return counts

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
        counts, log_probability = self._draw(*tables, uniforms, *given)
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

    # In NUTS' function; inputs that are taken by name from points must keep their length.
    types = Tabulate.results[:-1]
    tables = [pytensor.shared(np.zeros(0, dtype=x.dtype), shape=(None,)) for x in types]

    def sums_of(weights: Sequence[Variable], uniforms: Variable) -> list[TensorVariable]:
        arrays = [*weights, reading.largest, *fixed]
        return SumCounts(functions)(reading.naturals, uniforms, *arrays)

    # Not a constant, which is another type to numba: NUTS and draws share what is compiled.
    log_sums, *_ = sums_of(tables, pytensor.shared(np.zeros(0), shape=(None,)))
    [at_anchors] = rebuild([reading.log_density], {reading.anchors: tables[0]})
    [log_density] = reading.view.in_model([at_anchors + log_sums.sum()])

    data = list(reading.data.values())
    counts, uniforms = pt.lvector("counts"), pt.dvector("uniforms")
    tabulated = Tabulate(functions)(counts, reading.largest, pt.constant(np.int64(MOST)), *fixed)
    given_tables = [x() for x in types]
    *_, drawn, log_probabilities = sums_of(given_tables, uniforms)
    draws = [drawn, log_probabilities.sum()]
    given = [*reading.parameters, *data]
    return CompiledSums(
        reading=reading,
        log_density=log_density,
        tables=tables,
        _tabulate=JitFunction([counts, *data], tabulated, reading.model, options),
        _draw=JitFunction([*given_tables, uniforms, *given], draws, reading.model, options),
    )
