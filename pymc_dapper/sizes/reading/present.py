"""Present rows, if only the first n are."""

import pytensor.tensor as pt
from pymc import SymbolicRandomVariable
from pytensor.graph import Variable, ancestors
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.named_dims import as_plain
from pymc_dapper.checks import whole_number


def present(n: Variable | int, size: int) -> TensorVariable:
    """Return which rows are present: the first n of ``size``.

    For a model with an unknown number of records. The records are ordinary variables, with room for
    as many as there may be; mechanisms use the present ones only. Short for ``pt.arange(size) <
    n``.

    Parameters
    ----------
    n : variable or int
        The number of records: a scalar of whole numbers.
    size : int
        For how many records there is room.

    Returns
    -------
    TensorVariable of bool, shape (size,)
        Whether each row is present.

    Raises
    ------
    TypeError, ValueError
        If ``n`` isn't a scalar of whole numbers, or an entry of a vector of random ones; if
        ``size`` isn't a positive whole number. Give each of several groups a number of its own.

    Examples
    --------
    >>> with pm.Model():
    ...     n = pm.Poisson("n", 500)
    ...     x = pm.Normal("x", 0, 1, shape=1000)
    ...     present = pmd.present(n, 1000)
    ...     total = pt.switch(present, pt.clip(x, -3, 3), 0).sum()
    """
    size = whole_number(size, "size", at_least=1)
    if not isinstance(n, Variable):
        n = whole_number(n, "n", at_least=0)
    n = pt.as_tensor(as_plain(n))
    if n.type.ndim > 0 or n.type.dtype.startswith(("float", "complex", "bool")):
        name = f"'{n.name}' " if n.name else ""
        raise TypeError(
            f"n is {name}of type {n.type.dtype} with {n.type.ndim} axes: a number of records is a "
            "scalar of whole numbers, such as pm.Poisson or pm.DiscreteUniform without shape"
        )
    vector = _vector_of(n)
    if vector is not None:
        raise TypeError(f"n is an entry of {one_number_each(vector.name)}")
    return pt.arange(size) < n


def one_number_each(vector: str) -> str:
    """Describe the mistake of a vector of numbers of records, and what to do."""
    return (
        f"'{vector}', which has several numbers: SizeStep draws scalars, each given the records of "
        "its group. Give each group a number of its own, as in "
        f"[pm.Poisson(f'{vector}_{{group}}', 500) for group in groups]"
    )


def _vector_of(n: TensorVariable) -> TensorVariable | None:
    """Return the random vector that a number is an entry of, or a function of entries of."""
    kinds = RandomVariable | SymbolicRandomVariable
    random = {x for x in ancestors([n]) if x.owner and isinstance(x.owner.op, kinds)}
    seen = ancestors([n], blockers=random)  # whose inputs are parameters
    return next((x for x in seen if x in random and x.type.ndim > 0), None)
