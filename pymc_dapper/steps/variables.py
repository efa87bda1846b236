"""Which of a user's variables can be records."""

from collections.abc import Sequence

from pymc import Model
from pytensor.graph.basic import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.reading.errors import ReadingError


def record_values(variables: Variable | Sequence[Variable], model: Model) -> list[TensorVariable]:
    """Turn what a user passes as records into value variables of the model.

    Parameters
    ----------
    variables : variable or sequence of variables
        Free random variables, or their value variables.
    model : Model
        The model.

    Returns
    -------
    list of TensorVariable
        Their value variables.

    Raises
    ------
    ReadingError
        If one of them isn't a free random variable of the model.
    """
    if isinstance(variables, Variable):
        variables = [variables]
    return [_record_value(variable, model) for variable in variables]


def _record_value(variable: Variable, model: Model) -> TensorVariable:
    value = model.rvs_to_values.get(variable, variable)
    if value in model.value_vars:
        return value
    name = getattr(variable, "name", None) or str(variable)
    if variable in model.observed_RVs:
        raise ReadingError(
            f"'{name}' is observed: its values are known and can't be sampled as records. Pass the "
            "latent records that it depends on"
        )
    if variable in model.deterministics or variable in model.potentials:
        raise ReadingError(
            f"'{name}' is computed from other variables, it isn't a free random variable. Pass the "
            "random variables it is computed from"
        )
    raise ReadingError(
        f"'{name}' is not a free random variable of the model. The model has "
        + ", ".join(f"'{rv.name}'" for rv in model.free_RVs)
    )
