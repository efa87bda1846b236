"""Read a PyMC model: which records it has, what proposes them, and which factors see them."""

from collections.abc import Sequence
from dataclasses import dataclass

from pymc import Model
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Variable
from pytensor.graph.traversal import explicit_graph_inputs, graph_inputs
from pytensor.tensor.basic import constant
from pytensor.tensor.random.type import RandomGeneratorType
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.errors import ReadingError
from pymc_dapper.reading.factors import (
    AdditiveFactor,
    Factor,
    RecordSum,
    SeparableFactor,
    read_factors,
)
from pymc_dapper.reading.graphs import rebuild
from pymc_dapper.reading.proposals import read_proposals


@dataclass(frozen=True)
class ModelReading:
    """How a model sees its records. All graphs are in terms of value variables.

    Attributes
    ----------
    model : Model
        The model that was read.
    records : tuple of TensorVariable
        Value variables of the records, with the record axis first.
    rng : Variable
        Random generator, an input of ``proposals``.
    proposals : tuple of TensorVariable
        A draw of all records from their prior given everything else, in the order of ``records``.
    factors : tuple of Factor
        The factors of the log-density that depend on the records, their prior not included.
    parameters : tuple of TensorVariable
        Value variables of all other free variables that the graphs depend on.
    data : tuple of SharedVariable
        Shared data (``pm.Data``) that the graphs depend on.
    dim_lengths : dict of str to int
        Lengths of the model's dims when it was read; constants of the graphs.
    """

    model: Model
    records: tuple[TensorVariable, ...]
    rng: Variable
    proposals: tuple[TensorVariable, ...]
    factors: tuple[Factor, ...]
    parameters: tuple[TensorVariable, ...]
    data: tuple[SharedVariable, ...]
    dim_lengths: dict[str, int]

    @property
    def additive_factors(self) -> list[AdditiveFactor]:
        """The factors that see the records through sums."""
        return [factor for factor in self.factors if isinstance(factor, AdditiveFactor)]

    @property
    def separable_factors(self) -> list[SeparableFactor]:
        """The factors with one value per record."""
        return [factor for factor in self.factors if isinstance(factor, SeparableFactor)]

    @property
    def sums(self) -> list[RecordSum]:
        """The sums over records that any factor depends on, each once."""
        by_total = {sum_.total: sum_ for factor in self.additive_factors for sum_ in factor.sums}
        return list(by_total.values())


def read_model(model: Model, values: Sequence[TensorVariable]) -> ModelReading:
    """Find out how records enter a model's log-density.

    Parameters
    ----------
    model : Model
        The model.
    values : sequence of TensorVariable
        Value variables of the records.

    Returns
    -------
    ModelReading
        The model's factors, sorted by how they see the records, and the records' proposal.

    Raises
    ------
    ReadingError
        If a variable has no record axis, if no factor depends on the records, or if a factor
        does so in a way that isn't understood.
    """
    rvs = [model.values_to_rvs[value] for value in values]
    for rv in rvs:
        _check_record_axis(rv)

    others = [rv for rv in (*model.basic_RVs, *model.potentials) if rv not in rvs]
    log_densities = model.logp(vars=others, sum=False) if others else []
    rng, proposals = read_proposals(model, rvs)

    lengths = _dim_lengths(model)
    log_densities, proposals = _freeze_dims(model, lengths, [*log_densities], proposals)
    factors = read_factors(
        {rv.name: graph for rv, graph in zip(others, log_densities, strict=True)}, values
    )
    if not factors:
        names = ", ".join(f"'{rv.name}'" for rv in rvs)
        raise ReadingError(
            f"nothing in the model depends on the records {names}: they would just follow their "
            "prior. Add the privacy mechanism, as a pm.Potential or as an observed variable, as a "
            "function of the records"
        )

    graphs = [*proposals, *(_log_density(factor) for factor in factors)]
    inputs = [x for x in explicit_graph_inputs(graphs) if x is not rng and x not in values]
    data = [
        x
        for x in graph_inputs(graphs)
        if isinstance(x, SharedVariable) and not isinstance(x.type, RandomGeneratorType)
    ]
    order = {value: k for k, value in enumerate(model.value_vars)}
    return ModelReading(
        model=model,
        records=tuple(values),
        rng=rng,
        proposals=tuple(proposals),
        factors=tuple(factors),
        parameters=tuple(sorted(set(inputs), key=order.__getitem__)),
        data=tuple(dict.fromkeys(data)),
        dim_lengths=lengths,
    )


def _log_density(factor: Factor) -> TensorVariable:
    return factor.log_density if isinstance(factor, AdditiveFactor) else factor.log_densities


def _check_record_axis(rv: TensorVariable) -> None:
    batch_ndim = rv.type.ndim - rv.owner.op.ndim_supp
    if batch_ndim < 1:
        raise ReadingError(
            f"'{rv.name}' has no record axis: it is one draw of shape {rv.type.shape}, not one "
            "independent draw per record. A record variable's first axis runs over the records, as "
            f"in shape=(n, ...); sample '{rv.name}' with another step if it is a parameter"
        )


def _dim_lengths(model: Model) -> dict[str, int]:
    return {name: int(length.eval()) for name, length in model.dim_lengths.items()}


def _freeze_dims(
    model: Model,
    lengths: dict[str, int],
    *graphs: list[TensorVariable],
) -> list[list[TensorVariable]]:
    """Put constants in the place of dim lengths, which are shared variables of PyMC's."""
    constants = {
        length: constant(lengths[name], dtype=length.type.dtype)
        for name, length in model.dim_lengths.items()
        if isinstance(length, SharedVariable)
    }
    return [rebuild(graph, constants) for graph in graphs]
