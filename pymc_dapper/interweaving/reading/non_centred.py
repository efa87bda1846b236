"""A model with the records' noise in the place of the records."""

from collections.abc import Sequence
from dataclasses import dataclass

from pymc import Model
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.tensor.variable import TensorVariable


@dataclass(frozen=True)
class NonCentredModel:
    """A model's log-density in terms of parameters and the records' noise.

    All graphs are in terms of value variables.

    Attributes
    ----------
    model : Model
        The model that was read.
    parameters : tuple of TensorVariable
        Value variables of the parameters that move records, with static shapes.
    left_alone : tuple of str
        Names of the parameters that were asked for and don't move any record.
    records : tuple of TensorVariable
        Value variables of the records that the parameters move, with static shapes.
    uniforms : tuple of TensorVariable
        Inputs of the graphs: uniform variates, as many as there are discrete records.
    noise : tuple of TensorVariable
        The noise of each of ``records``, computed from them and the parameters.
    proposed : tuple of TensorVariable
        Inputs of the graphs below: new values of ``parameters``.
    moved_records : tuple of TensorVariable
        The records at the proposed parameters and the present noise.
    log_density : TensorVariable, scalar
        Log-density of the proposed parameters given the noise, but for a constant: all factors
        that the parameters or the records enter, less ``log_law``.
    log_law : TensorVariable or None
        Log-density of the records, as they are, by the law whose noise is held fixed. None if that
        is their prior, which is then left out of the factors.
    factors : tuple of str
        Names of these factors.
    given : tuple of TensorVariable
        Value variables of all else that the graphs depend on.
    data : tuple of SharedVariable
        Shared data (``pm.Data``) that the graphs depend on.
    dim_lengths : dict of str to int
        Lengths of the model's dims when it was read; constants of the graphs.
    """

    model: Model
    parameters: tuple[TensorVariable, ...]
    left_alone: tuple[str, ...]
    records: tuple[TensorVariable, ...]
    uniforms: tuple[TensorVariable, ...]
    noise: tuple[TensorVariable, ...]
    proposed: tuple[TensorVariable, ...]
    moved_records: tuple[TensorVariable, ...]
    log_density: TensorVariable
    log_law: TensorVariable | None
    factors: tuple[str, ...]
    given: tuple[TensorVariable, ...]
    data: tuple[SharedVariable, ...]
    dim_lengths: dict[str, int]

    def names(self, values: Sequence[TensorVariable]) -> list[str]:
        """Names of value variables' random variables, as the model has them."""
        names = {value.name: rv.name for value, rv in self.model.values_to_rvs.items()}
        return [names[value.name] for value in values]
