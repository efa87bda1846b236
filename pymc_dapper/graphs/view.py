"""The view of a model: its graphs in terms of values, which all readers share."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pytensor.scalar as ps
from pymc import Model
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Apply, Variable, ancestors, explicit_graph_inputs, graph_inputs
from pytensor.graph.traversal import io_toposort
from pytensor.tensor.basic import constant
from pytensor.tensor.elemwise import Elemwise
from pytensor.tensor.random.type import RandomGeneratorType
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.graphs.asked_once import answer, initial_point, log_densities, misshapen
from pymc_dapper.graphs.bounds import Bounds
from pymc_dapper.graphs.dependence import dependent_factors
from pymc_dapper.graphs.errors import FAILURES, ReadingError
from pymc_dapper.graphs.evaluation import compile_in_python
from pymc_dapper.graphs.known import IN_PYTHON, known_value, written_shape
from pymc_dapper.graphs.rebuild import rebuild, with_static_shape
from pymc_dapper.graphs.support import bounds_by_support, largest_length
from pymc_dapper.graphs.values import at_values, forward


def view_of(model: Model) -> "ModelView":
    """Return the view of a model; within `asked_once`, all readers get the same one."""
    return answer(model, "view", partial(ModelView, model))


def dim_lengths(model: Model) -> dict[str, int]:
    """Return the current lengths of the model's dims."""
    lengths = compile_in_python(model, [], list(model.dim_lengths.values()))()
    return dict(zip(model.dim_lengths, map(int, lengths), strict=True))


class ModelView:
    """A model in terms of values of its variables, with all shapes known.

    Lengths of dims are constants in its graphs. Value variables and shared data (``pm.Data``) have
    stand-ins with their names and current shapes. Graphs of one view can be combined, those of
    different views can't.

    Attributes
    ----------
    model : Model
        The model, without named dimensions.
    dim_lengths : dict of str to int
        Lengths of its dims.
    dims : dict of Variable to Variable
        Constants that replace PyMC's shared variables for lengths.
    data : dict of SharedVariable to TensorVariable
        Stand-ins for shared data.
    """

    def __init__(self, model: Model):
        self.model = model
        self.dim_lengths = dim_lengths(model)
        self.dims: dict[Variable, Variable] = {
            length: constant(self.dim_lengths[name], dtype=length.type.dtype)
            for name, length in model.dim_lengths.items()
            if isinstance(length, SharedVariable)
        }
        variables = [*model.named_vars.values(), *model.rvs_to_values.values()]
        self.data = {x: stand_in(x) for x in shared_data(variables) if x not in self.dims}
        self._written: dict[Variable, Variable] = {}

    @cached_property
    def values(self) -> dict[TensorVariable, TensorVariable]:
        """Stand-ins for value variables, in the model's order."""
        # Some models have no initial point in PyMC, such as large tables of few people.
        shapes = {x: x.type.shape for x in self.model.value_vars}
        for x in (x for x, shape in shapes.items() if None in shape):
            rv = self.model.values_to_rvs[x]
            shapes[x] = self.shape(rv)
            if self.model.rvs_to_transforms[rv] is not None:
                shapes[x] = np.shape(initial_point(self.model)[x.name])
        return {x: x.type.clone(shape=shape)(name=x.name) for x, shape in shapes.items()}

    def __call__[V: Variable](self, graphs: Iterable[V]) -> list[V]:
        """Write graphs of the model's value variables, data and dims in terms of the view."""
        graphs = list(graphs)
        if not self._written:
            self._written = {**self.dims, **self.data, **self.values}
        # Common subgraphs are rewritten once.
        todo = [graph for graph in graphs if graph not in self._written]
        for node in io_toposort(list(self._written), todo) if todo else ():
            inputs = _as_numbers(node, [self._written.get(x, x) for x in node.inputs])
            known = _taken_branch(node, inputs) or largest_length(node, inputs, self._supports)
            outputs = known or with_static_shape(node, inputs)
            for old, new in zip(node.outputs, outputs, strict=True):
                self._written.setdefault(old, new)
        return [self._written.get(graph, graph) for graph in graphs]

    def _supports(self) -> dict[Variable, Bounds]:
        transforms = self.model.rvs_to_transforms
        rvs = [rv for rv in self.model.free_RVs if transforms[rv] is None]
        return {self.values[self.model.rvs_to_values[rv]]: bounds_by_support(rv) for rv in rvs}

    def log_densities(
        self, variables: Sequence[Variable], *, jacobian: bool = True
    ) -> list[TensorVariable]:
        """Return log-densities of random variables and Potentials, not summed over entries.

        With ``jacobian``, they include the log-Jacobian of transforms.

        Raises
        ------
        NotImplementedError, RuntimeError
            See :func:`~pymc_dapper.graphs.asked_once.log_densities`.
        """
        graphs = log_densities(self.model, variables, jacobian=jacobian)
        return [self._factor(x.name, graph) for x, graph in zip(variables, graphs, strict=True)]

    def named_log_densities(
        self, variables: Sequence[Variable], *, jacobian: bool = True
    ) -> dict[str, TensorVariable]:
        """Return log-densities by the names of the variables."""
        graphs = self.log_densities(variables, jacobian=jacobian)
        return dict(zip([x.name for x in variables], graphs, strict=True))

    def dependent_factors(
        self, values: Sequence[TensorVariable], *, jacobian: bool = True
    ) -> dict[str, TensorVariable]:
        """Find the factors that depend on some value variables; see the function of that name."""
        found = dependent_factors(self.model, values, jacobian=jacobian)
        return {name: self._factor(name, graph) for name, graph in found.items()}

    def _factor(self, name: str, graph: TensorVariable) -> TensorVariable:
        try:
            return self([graph])[0]
        except FAILURES as error:
            raise misshapen(self.model, self.model[name], error) from error

    def at_values(
        self,
        graphs: Sequence[Variable],
        instead: Mapping[TensorVariable, TensorVariable] | None = None,
    ) -> list[TensorVariable]:
        """Replace random variables by values, or by given variables for some of them.

        ``instead`` has the given variables, in natural space. Other random variables are computed
        from their values.
        """
        return self(at_values(self.model, graphs, instead or {}))

    def forward(self, naturals: Mapping[TensorVariable, TensorVariable]) -> list[TensorVariable]:
        """Write values as functions of random variables in natural space."""
        return self(forward(self.model, naturals))

    def in_model[V: Variable](self, graphs: Sequence[V]) -> list[V]:
        """Put the model's value variables and data back."""
        of_model = {new: old for each in (self.values, self.data) for old, new in each.items()}
        return rebuild(graphs, of_model)

    def values_in(
        self, graphs: Sequence[Variable], but: Collection[Variable] = ()
    ) -> tuple[TensorVariable, ...]:
        """Return the stand-ins for values on which graphs of the view depend."""
        inputs = set(explicit_graph_inputs(graphs))
        return tuple(x for x in self.values.values() if x in inputs and x not in but)

    def data_in(self, graphs: Sequence[Variable]) -> dict[SharedVariable, TensorVariable]:
        """Return the shared data on which graphs of the view depend, with its stand-ins."""
        inputs = set(explicit_graph_inputs(graphs))
        return {shared: x for shared, x in self.data.items() if x in inputs}

    def shape(self, rv: TensorVariable) -> tuple[int, ...]:
        """Return the shape of a random variable; refuse one that depends on draws."""
        if None not in rv.type.shape:
            return tuple(rv.type.shape)
        shape = written_shape(rv)
        names = {x.name for x in self.model.free_RVs}
        if drawn := [x.name for x in ancestors([shape]) if x.name in names]:
            raise ReadingError(
                f"the length of '{rv.name}' depends on '{drawn[0]}'. Give it room for all, and "
                f"write pt.switch(pmd.present({drawn[0]}, room), {rv.name}, 0) in a statistic"
            )
        try:
            return tuple(int(length) for length in shape.eval(mode=IN_PYTHON))
        except FAILURES as error:
            raise misshapen(self.model, rv, error) from error


def stand_in(shared: SharedVariable) -> TensorVariable:
    """Make a stand-in for shared data that remembers the data."""
    variable = shared.type.clone(shape=np.shape(complete(shared)))(name=shared.name)
    variable.tag.stands_for = shared
    return variable


def complete(shared: SharedVariable) -> np.ndarray:
    """Return the value of shared data; refuse a missing one, which ``pm.set_data`` lets pass."""
    value = shared.get_value(borrow=True)
    if np.ma.is_masked(value):
        raise ReadingError(
            f"the data '{shared.name}' have missing values, masked or nan: "
            f"{np.ma.count_masked(value)} of {value.size}. Fill them in, or leave these records "
            "out. What a mechanism suppressed is written by mechanism.as_released"
        )
    return value


def shared_data(graphs: Sequence[Variable]) -> list[SharedVariable]:
    """Return the shared variables that graphs depend on, generators aside, each once."""
    shared = (x for x in graph_inputs(graphs) if isinstance(x, SharedVariable))
    return [x for x in shared if not isinstance(x.type, RandomGeneratorType)]


@dataclass(frozen=True, eq=False)
class Reading:
    """The result of reading a model: graphs in terms of its view."""

    view: ModelView
    data: Mapping[SharedVariable, TensorVariable]
    """Shared data on which the graphs depend, with its stand-ins."""

    @property
    def model(self) -> Model:
        """The model of the reading."""
        return self.view.model

    def names(self, values: Iterable[Variable]) -> list[str]:
        """Return the model's names of variables, given the stand-ins for their values."""
        names = {value.name: rv.name for value, rv in self.model.values_to_rvs.items()}
        return [names[x.name] for x in values]


def _taken_branch(node: Apply, inputs: Sequence[Variable]) -> Sequence[Variable] | None:
    """Return the branch that a known condition takes, such as that of an odd number of records."""
    # The module of IfElse depends on the version of PyTensor.
    condition = known_value(inputs[0]) if type(node.op).__name__ == "IfElse" else None
    if condition is None:
        return None
    n = len(node.outputs)
    return inputs[1 : 1 + n] if condition else inputs[1 + n :]


def _as_numbers(node: Apply, inputs: list[Variable]) -> list[Variable]:
    """Convert booleans in a sum with numbers to numbers: the sum of booleans alone is "or".

    PyTensor drops a 0 from sums such as Python's ``sum(x > cut for cut in cuts)``, and its type.
    """
    if not isinstance(node.op, Elemwise) or node.op.scalar_op != ps.add:
        return inputs
    dtype = node.outputs[0].type.dtype
    return [x.astype(dtype) if x.type.dtype == "bool" else x for x in inputs]
