"""States of a model drawn from its prior, at which readings are checked."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from pymc import Model
from pytensor.graph import Variable
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.errors import FAILURES
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.noise import with_randomness
from pymc_dapper.graphs.prior import read_prior_draws
from pymc_dapper.graphs.rebuild import inline_symbolic_ops
from pymc_dapper.graphs.view import ModelView

type Reader = Callable[[ModelView, Sequence[TensorVariable]], list[TensorVariable]]


def drawing(
    model: Model, graphs: Sequence[Variable], given: Sequence[Variable] = ()
) -> Callable[..., list[np.ndarray]]:
    """Make a function, evaluated in Python, that draws what graphs of random variables compute.

    It takes a generator, and the values of ``given`` variables. A compiled function doesn't advance
    its generator: each call needs its own.
    """
    randomness, drawn = with_randomness(inline_symbolic_ops(list(graphs)))
    draw = compile_in_python(model, [*randomness.inputs, *given], drawn)
    return lambda rng, *values: draw(*randomness.draw(rng), *values)


def draw_values(
    view: ModelView,
    rvs: Sequence[TensorVariable],
    rng: np.random.Generator,
    point: Mapping[str, np.ndarray],
    read: Reader = read_prior_draws,
) -> dict[str, np.ndarray] | None:
    """Draw the values of some variables, given a point with the values that they depend on.

    Returns a dict by names of value variables; None if they can't be drawn, even by an error of a
    user's distribution. ``read`` makes the graphs that draw them.
    """
    values = [view.model.rvs_to_values[rv] for rv in rvs]
    try:
        randomness, graphs = with_randomness(read(view, rvs))
        others = view.values_in(graphs)
        draw = compile_in_python(view.model, [*randomness.inputs, *others], graphs)
        drawn = draw(*randomness.draw(rng), *(np.asarray(point[x.name]) for x in others))
    except FAILURES:
        return None
    pairs = zip(values, drawn, strict=True)
    return {value.name: np.asarray(x, dtype=value.dtype) for value, x in pairs}


def is_finite(values: Mapping[str, np.ndarray]) -> bool:
    """Whether all values are finite."""
    return all(np.all(np.isfinite(x)) for x in values.values())
