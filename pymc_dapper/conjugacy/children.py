"""A parameter's children: the variables of a model whose distribution depends on it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytensor.tensor as pt
from pytensor.graph import Op, Variable, ancestors
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.names import PARAMETERS, family_name
from pymc_dapper.conjugacy.relations import Independent, Power, Relation, read_relations
from pymc_dapper.conjugacy.totals import total, total_by_category
from pymc_dapper.graphs.errors import NotConjugateError
from pymc_dapper.graphs.present import Present, present_rows
from pymc_dapper.graphs.rebuild import inline_symbolic_ops, rebuild
from pymc_dapper.graphs.view import ModelView


@dataclass(frozen=True, eq=False)
class Child:
    """A random variable, as a function of the chosen parameters."""

    name: str
    """Its name in the model."""
    op: Op
    """Its random variable operation: the family of its distribution."""
    value: TensorVariable
    """Its value, in its natural space."""
    parameters: tuple[TensorVariable, ...]
    """The parameters of its distribution, in the order of ``op.dist_params``."""

    @property
    def family(self) -> str:
        """The name of its distribution."""
        return family_name(type(self.op))

    def first(self, n: TensorVariable) -> "Child":
        """Leave out all rows but the first ``n``."""
        ndim = self.value.type.ndim
        supported = self.op.ndim_supp
        pairs = zip(self.parameters, self.op.ndims_params, strict=True)
        rows = [present_rows(x, n, ndim - supported + core_ndim) for x, core_ndim in pairs]
        return replace(self, value=self.value[:n], parameters=tuple(rows))

    def name_parameter(self, position: int) -> str:
        """Name a parameter of its distribution."""
        names = PARAMETERS.get(self.family, ())
        name = f"the {names[position]}" if position < len(names) else f"parameter {position + 1}"
        return f"{name} of '{self.name}' ({self.family})"


def read_children(
    view: ModelView,
    parameters: Mapping[TensorVariable, TensorVariable],
    present: Present | None = None,
) -> list[Child]:
    """Find the random variables whose distribution depends on parameters.

    The parameters themselves are included. Each child comes with the variable for its value. If
    some rows of a child may be absent, ``present`` gives the number of present ones: the child is
    then these first rows.

    Raises
    ------
    NotConjugateError
        If a Potential depends on the parameters, or if a distribution does in a way that can't be
        read.
    """
    model, stand_ins = view.model, set(parameters.values())
    names = " and ".join(f"'{rv.name}'" for rv in parameters)

    def read(graphs: Sequence[Variable]) -> list[TensorVariable]:
        return inline_symbolic_ops(view.at_values(graphs, parameters))

    def depends(graphs: Sequence[Variable]) -> bool:
        return not stand_ins.isdisjoint(ancestors(list(graphs)))

    others = [rv for rv in model.basic_RVs if rv not in parameters]
    for potential in model.potentials:
        # Look at the model's own graph first: reading a graph takes long.
        seen = not parameters.keys().isdisjoint(ancestors([potential], blockers=others))
        if seen and depends(read([potential])):
            raise NotConjugateError(
                f"the Potential '{potential.name}' depends on {names}, so their conditional "
                "distribution is of no known family"
            )

    children = []
    for rv in model.basic_RVs:
        if parameters.keys().isdisjoint(ancestors([rv, *rv.owner.inputs], blockers=others)):
            continue
        inputs = [x for x in rv.owner.inputs if isinstance(x, TensorVariable)]
        value = parameters[rv] if rv in parameters else read([rv])[0]
        if rv not in parameters and depends([value]):
            raise NotConjugateError(
                f"the bounds of '{rv.name}' depend on {names}, so its value on the natural scale "
                "changes with them"
            )
        if rv not in parameters and not depends(read(inputs)):
            continue
        dist_params = _parameters_of(rv)
        if dist_params is None:
            raise NotConjugateError(
                f"the distribution of '{rv.name}' ({family_name(type(rv.owner.op))}) depends on "
                f"{names}, and its parameters can't be read"
            )
        child = Child(rv.name, rv.owner.op, value, tuple(read(dist_params)))
        size = (present or {}).get(rv)
        children.append(child if size is None else child.first(read([size])[0]))
    return children


def _parameters_of(rv: TensorVariable) -> Sequence[Variable] | None:
    """Return a distribution's parameters; None for an operation without a known signature."""
    if not hasattr(rv.owner.op, "dist_params"):
        return None
    try:
        parameters: Sequence[Variable] = rv.owner.op.dist_params(rv.owner)
    except ValueError:  # it has no signature
        return None
    return parameters


@dataclass(frozen=True, eq=False)
class Link:
    """How one parameter of a child's distribution is made of the entries of theta.

    The child's parameter is ``coefficient * theta ** power``, entry by entry.

    Attributes
    ----------
    child : Child
        The child.
    position : int
        Which of its parameters.
    relation : Power
        The entries of theta, and their power.
    theta : TensorVariable
        The variable for the parameter's value; its shape is static.
    """

    child: Child
    position: int
    relation: Power
    theta: TensorVariable

    @property
    def value(self) -> TensorVariable:
        """The child's value."""
        return self.child.value

    @property
    def parameters(self) -> tuple[TensorVariable, ...]:
        """The parameters of the child's distribution; of use are those without theta."""
        return self.child.parameters

    @property
    def coefficient(self) -> TensorVariable:
        """The factor of the power of theta."""
        if not self.relation.scaled:
            return pt.as_tensor(1.0)
        # Evaluate at theta = 1, for any power.
        [coefficient] = rebuild(
            [self.child.parameters[self.position]], {self.theta: pt.ones(self.theta.type.shape)}
        )
        return coefficient

    def total(self, terms: TensorVariable | float) -> TensorVariable:
        """Add up terms over the entries of the child that share an entry of theta.

        Parameters
        ----------
        terms : TensorVariable
            A term for each entry of the child's value; may be broadcast to them.

        Returns
        -------
        TensorVariable
            In the shape of theta.
        """
        terms = pt.broadcast_to(pt.as_tensor(terms), self.value.shape)
        return total(terms, self.relation.entries, self.theta)

    def count(self) -> TensorVariable:
        """Count the child's values, numbers of the last axis of its parameter.

        Returns
        -------
        TensorVariable
            In the shape of theta: how many entries of the child have taken which category.
        """
        return total_by_category(self.value, self.relation.entries, self.theta)


def read_link(child: Child, theta: TensorVariable, *, positive: bool) -> Link:
    """Find out which parameter of a child theta enters, and how.

    Refused if theta enters several parameters, or one otherwise than entry by entry as a power.
    """
    relations: list[Relation] = []
    for k, parameter in enumerate(child.parameters):
        try:
            relations += read_relations([parameter], [theta], positive=positive)
        except NotConjugateError as error:
            raise NotConjugateError(
                f"{child.name_parameter(k)} isn't c * {theta.name}^k with a constant k: {error}"
            ) from None
    dependent = [k for k, r in enumerate(relations) if not isinstance(r, Independent)]
    if len(dependent) > 1:
        which = " and ".join(child.name_parameter(k) for k in dependent)
        raise NotConjugateError(f"it enters {which} at once")
    if not dependent:
        raise NotConjugateError(f"the shape of '{child.name}' depends on it")
    [position] = dependent
    relation = relations[position]
    if not isinstance(relation, Power):
        raise NotConjugateError(
            f"{child.name_parameter(position)} is a sum that contains '{theta.name}', not "
            f"c * {theta.name}^k entry by entry"
        )
    return Link(child, position, relation, theta)
