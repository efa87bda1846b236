"""A parameter's conditional distribution given everything else, if it is conjugate."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytensor.tensor as pt
from pymc import Model
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.backend.internals import Interval, Transform, default_transform
from pymc_dapper.conjugacy import gaussian, weights
from pymc_dapper.conjugacy.children import Child, read_children, read_link
from pymc_dapper.conjugacy.families import Family, check_prior, read_prior
from pymc_dapper.conjugacy.rules import find_rule
from pymc_dapper.graphs.errors import NotConjugateError
from pymc_dapper.graphs.flat import split
from pymc_dapper.graphs.known import known_value
from pymc_dapper.graphs.present import Present
from pymc_dapper.graphs.rebuild import rebuild
from pymc_dapper.graphs.view import ModelView, Reading, view_of


@dataclass(frozen=True, eq=False)
class Conditional(Reading):
    """The conditional of one or several parameters."""

    rvs: tuple[TensorVariable, ...]
    """The parameters: random variables."""
    shapes: tuple[tuple[int, ...], ...]
    """Their shapes."""
    family: Family
    """Several parameters are one vector, flattened and joined."""
    children: tuple[str, ...]
    """Names of the variables whose distribution depends on them."""
    parameters: tuple[TensorVariable, ...]
    """Parameters of the conditional, in terms of value variables."""
    to_values: tuple[TensorVariable, ...]
    """Value variables as functions of ``thetas``."""
    thetas: tuple[TensorVariable, ...]
    """Variables for draws of the parameters."""
    present: Present
    """Number of present rows: the conditional is given these alone, others are marginalised."""

    @property
    def values(self) -> list[TensorVariable]:
        """The view's variables for the values of the parameters."""
        return [self.view.values[self.model.rvs_to_values[rv]] for rv in self.rvs]

    def split(self, draw: np.ndarray) -> list[np.ndarray]:
        """Take one vector of all parameters apart."""
        return split(np.ravel(draw), self.shapes)


def read_conditionals(
    model: Model, rvs: Sequence[TensorVariable], present: Present | None = None
) -> list[Conditional]:
    """Read the conditionals of parameters: free random variables, in their order.

    Normal parameters that share a factor are read as one, at the place of the last; others one by
    one. If some rows of records may be absent, ``present`` gives the number of present ones: the
    conditionals are given these alone.

    Raises
    ------
    NotConjugateError
        If a conditional isn't of a known family; the message names the variable that breaks it.
    """
    view = view_of(model)
    conditionals = []
    for block in _blocks(view, rvs):
        with _explained(block):
            conditionals.append(_read_conditional(view, block, present or {}))
    return conditionals


def _blocks(view: ModelView, rvs: Sequence[TensorVariable]) -> list[list[TensorVariable]]:
    """Put normal parameters that a factor of the density ties together in one block.

    And gamma weights of the categories of one variable.
    """
    blocks: list[tuple[set[str], list[TensorVariable]]] = []
    for rv in rvs:
        factors = weights.categories_of(view.model, rv)
        if isinstance(rv.owner.op, gaussian.NORMAL):
            with _explained([rv]):
                children = read_children(view, {rv: rv.clone()})
            factors = {child.name for child in children}
        tied = [block for block in blocks if not factors.isdisjoint(block[0])]
        blocks = [block for block in blocks if factors.isdisjoint(block[0])]
        together = [x for _, members in tied for x in members]
        blocks.append((factors.union(*(names for names, _ in tied)), [*together, rv]))
    return [members for _, members in blocks]


@contextmanager
def _explained(rvs: Sequence[TensorVariable]) -> Iterator[None]:
    """Name the parameters in a refusal, with what to do."""
    names = " and ".join(f"'{rv.name}'" for rv in rvs)
    try:
        yield
    except NotConjugateError as error:
        raise NotConjugateError(
            f"{names} can't be drawn directly from the conditional distribution given all other "
            f"variables: {error}. Leave {names} to NUTS, or draw from the conditional yourself "
            "with a FunctionStep"
        ) from None


def _read_conditional(
    view: ModelView, rvs: Sequence[TensorVariable], present: Present
) -> Conditional:
    for rv in rvs:
        if not isinstance(rv.owner.op, gaussian.NORMAL):
            check_prior(rv.owner.op)
        _check_support(view.model, rv)
    # In double precision, whatever the model's precision.
    thetas = [pt.tensor(rv.name, dtype="float64", shape=view.shape(rv)) for rv in rvs]
    parameters = dict(zip(rvs, thetas, strict=True))
    if weights.categories_of(view.model, rvs[0]):
        outputs, children = weights.read_weights(view, parameters, present)
        of: Family = weights.WEIGHTS
    else:
        outputs, children, of = _read_family(view, parameters, present)
        # The outputs depend on the shapes of thetas only.
        outputs = rebuild(outputs, {theta: pt.ones(theta.type.shape) for theta in thetas})
    to_values = view.forward(parameters)
    return Conditional(
        view=view,
        data=view.data_in([*outputs, *to_values]),
        rvs=tuple(rvs),
        shapes=tuple(theta.type.shape for theta in thetas),
        family=of,
        children=tuple(child.name for child in children),
        parameters=tuple(outputs),
        to_values=tuple(to_values),
        thetas=tuple(thetas),
        present=present,
    )


def _read_family(
    view: ModelView, parameters: Mapping[TensorVariable, TensorVariable], present: Present
) -> tuple[list[TensorVariable], list[Child], Family]:
    """Read the conditional's parameters, the children, and the family of the prior."""
    rvs, thetas = list(parameters), list(parameters.values())
    family = read_children(view, parameters, present)
    names = {rv.name for rv in rvs}
    children = [child for child in family if child.name not in names]
    priors = [child for child in family if child.name in names]
    if isinstance(rvs[0].owner.op, gaussian.NORMAL):
        residuals = [gaussian.read_residual(child, thetas) for child in family]
        if len(rvs) == 1 and all(r.entries is not None and not r.joint for r in residuals):
            outputs, of = gaussian.entrywise_normal(residuals, thetas[0]), gaussian.ENTRYWISE
        else:
            outputs, of = gaussian.joint_normal(residuals, thetas), gaussian.JOINT
    else:
        [theta], [prior] = thetas, priors
        outputs, of = _add_to_prior(prior, children, theta)
    return [x.astype("float64") for x in outputs], children, of


def _add_to_prior(
    prior: Child, children: Sequence[Child], theta: TensorVariable
) -> tuple[list[TensorVariable], Family]:
    """Add the terms of all children to the parameters of the prior."""
    family, parameters = read_prior(prior.op, prior.parameters)
    outputs = list(parameters)
    for child in children:
        link = read_link(child, theta, positive=family.positive)
        terms = find_rule(family, link)(link)
        outputs = [a + b for a, b in zip(outputs, terms, strict=True)]
    return [pt.broadcast_to(x, theta.type.shape) for x in outputs], family


def _check_support(model: Model, rv: TensorVariable) -> None:
    """Refuse a transform that leaves out values of the prior's support."""
    transform = model.rvs_to_transforms[rv]
    default = default_transform(rv.owner.op, rv)
    same = type(transform) is type(default) and _bounds(transform, rv) == _bounds(default, rv)
    if transform is not None and not same:
        raise NotConjugateError(
            f"the transform {type(transform).__name__} may restrict '{rv.name}' to a part of its "
            "prior's support, so that the conditional is cut off there"
        )


def _bounds(transform: Transform | None, rv: TensorVariable) -> list[float | None]:
    """Bounds of the interval to which a transform maps, if they are known."""
    if not isinstance(transform, Interval):
        return []
    bounds = transform.args_fn(*rv.owner.inputs)
    known = [None if x is None else known_value(pt.as_tensor(x)) for x in bounds]
    return [None if x is None else float(x.min()) for x in known]
