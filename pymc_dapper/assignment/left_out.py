"""Warnings of variables that PyMC's own steps would move although they belong to the records."""

from collections.abc import Sequence

from pymc.vartypes import continuous_types
from pytensor.graph import ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.assignment.latent import Latent
from pymc_dapper.assignment.parameters import UnbuiltNuts
from pymc_dapper.graphs.dependence import answers_of_records
from pymc_dapper.graphs.view import view_of
from pymc_dapper.interweaving.boundary_step import BoundaryStep
from pymc_dapper.interweaving.step import InterweaveStep
from pymc_dapper.records.reading.linked import length
from pymc_dapper.steps.base import Step
from pymc_dapper.steps.progress import LOGGER


def warn_of_left_out(latent: Latent, steps: Sequence[Step | UnbuiltNuts]) -> None:
    """Warn of variables with an entry for each record that PyMC's own steps would move."""
    model = latent.readings.model
    again = BoundaryStep | InterweaveStep
    ours = [step for step in steps if isinstance(step, Step) and not isinstance(step, again)]
    taken = {x for step in ours for x in step.vars}
    lengths = {length(model, rv) for rv in latent.records} | latent.tabulated
    of_counts = {length(model, rv) for rv in latent.counts}
    beneath = set(ancestors(answers_of_records(model)))  # of records that aren't there any more
    for rv in model.free_RVs:
        n = length(model, rv)
        if n is not None and rv not in latent.all:
            _warn_of_other_axis(latent, rv, n)
        among = lengths if rv.dtype in continuous_types else lengths | of_counts
        is_beneath = rv in beneath and rv.dtype in continuous_types
        if n is None or n not in among or model.rvs_to_values[rv] in taken or is_beneath:
            continue
        names = ", ".join(x.name for x in model.free_RVs if x in latent.records or x is rv)
        how = "NUTS moves them" if rv.dtype in continuous_types else "PyMC moves them one by one"
        LOGGER.warning(
            "'%s' has as many entries as there are records, %s, and isn't one of their variables: "
            "%s, which may be slow. Where each belongs to a record, pass it with the others: "
            "records=[%s]%s",
            rv.name,
            f"{n:,}",
            how,
            names,
            ", tabulate=False" if latent.tabulated else "",
        )


def _warn_of_other_axis(latent: Latent, rv: TensorVariable, n: int) -> None:
    """Warn of a variable with an entry for each of the many along a later axis of the records."""
    for x in latent.records:
        first, *others = view_of(latent.readings.model).shape(x)
        if n in others and n > first and rv in ancestors(x.owner.inputs):
            LOGGER.warning(
                "'%s' has %s entries along its first axis, and is taken for %s records. '%s' has "
                "an entry for each of %s along a later axis. If these are the records, put their "
                "axis first, as in shape=(%s, %s)",
                x.name, first, first, rv.name, f"{n:,}", n, first,
            )  # fmt: skip
            return
