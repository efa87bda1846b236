"""The same model without named dimensions (`pymc.dims`).

PyTensor lowers operations on named dimensions to operations on axes before it compiles a graph.
Here this is done to a whole model before it is read, so that readers get plain tensors only. Names,
dims, coords and shared data stay the model's: a point of one is a point of the other.
"""

from collections.abc import Iterator, Sequence

from pymc import Model
from pymc.dims.distributions import transforms as named
from pymc.distributions import transforms as plain
from pymc.distributions.transforms import Transform
from pytensor.compile import optdb
from pytensor.compile.ops import ViewOp, view_op
from pytensor.graph import FunctionGraph, Variable
from pytensor.tensor import as_tensor_variable
from pytensor.tensor.elemwise import DimShuffle
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.shape import SpecifyShape
from pytensor.tensor.sharedvar import TensorSharedVariable
from pytensor.tensor.type import TensorType
from pytensor.tensor.variable import TensorVariable
from pytensor.xtensor.basic import TensorFromXTensor
from pytensor.xtensor.type import XTensorSharedVariable

from pymc_dapper.backend.mechanism_tags import tag, tagged_graphs
from pymc_dapper.backend.named_dims import as_plain, has_named_dims

_CIRCULAR = getattr(named, "CircularTransform", ())
"""PyMC 6.3 has it for plain tensors only."""


def without_named_dims(model: Model) -> Model:
    """Build the plain model of a model with named dimensions.

    Raises
    ------
    NotImplementedError
        For a transform that isn't one of PyMC's.
    """
    return _Lowered(model).model()


class _Lowered:
    """The graphs of a model, without named dimensions."""

    def __init__(self, model: Model):
        self._model = model
        self._shared: dict[Variable, TensorSharedVariable] = {}
        wanted = list(dict.fromkeys(self._wanted()))
        graph = FunctionGraph(outputs=[as_plain(x) for x in wanted], copy_inputs=False)
        for node in graph.toposort():
            # The view that a Deterministic of one variable is, which isn't lowered.
            if isinstance(node.op, ViewOp) and has_named_dims(node.inputs[0]):
                graph.replace(node.outputs[0], node.inputs[0])
        optdb.query("+lower_xtensor").rewrite(graph)
        for node in list(graph.apply_nodes):
            if isinstance(node.op, TensorFromXTensor) and node.inputs[0].owner is None:
                plain_end = self._plain_end(node.inputs[0])
                graph.replace(node.outputs[0], plain_end, import_missing=True)
        self._graph, self._place = graph, {x: k for k, x in enumerate(wanted)}
        for rv in model.basic_RVs:
            if has_named_dims(rv):
                self._write_as_plain(rv)

    def _wanted(self) -> Iterator[Variable]:
        """Visit everything that the plain model needs."""
        model = self._model
        yield from model.named_vars.values()
        for variable in model.named_vars.values():
            yield from tagged_graphs(variable)
        yield from (model.rvs_to_values[rv] for rv in model.observed_RVs)
        yield from (x for x in model.rvs_to_initial_values.values() if isinstance(x, Variable))

    def __getitem__(self, variable: Variable) -> TensorVariable:
        """Return the plain form of a variable of the model."""
        return self._graph.outputs[self._place[variable]]

    def _plain_end(self, end: Variable) -> Variable:
        """Convert the inputs of graphs: constants and shared data."""
        if not isinstance(end, XTensorSharedVariable):
            return as_tensor_variable(end.data)
        if end not in self._shared:
            self._shared[end] = TensorSharedVariable(
                type=TensorType(end.type.dtype, shape=end.type.shape),
                value=None,
                strict=None,
                container=end.container,  # so that pm.set_data changes both
                name=end.name,
            )
        return self._shared[end]

    def _write_as_plain(self, rv: Variable) -> None:
        """Write a random variable as one without named dims is: with the lengths of dims as size.

        A transposed variable of single values is written as drawn in that order. The length of a
        dim of a constant array is the array's.
        """
        drawn, known = self[rv], self[rv].type.shape
        order = list(range(drawn.type.ndim))
        while isinstance(drawn.owner.op, SpecifyShape):
            drawn = drawn.owner.inputs[0]
        if isinstance(drawn.owner.op, DimShuffle) and drawn.owner.op.is_transpose:
            order = list(drawn.owner.op.shuffle)
            [drawn] = drawn.owner.inputs
        while isinstance(drawn.owner.op, SpecifyShape):
            drawn = drawn.owner.inputs[0]
        op = drawn.owner.op
        if not isinstance(op, RandomVariable):
            return
        n_batch = drawn.type.ndim - op.ndim_supp
        if order[n_batch:] != list(range(n_batch, drawn.type.ndim)):
            return
        rng, _, *parameters = drawn.owner.inputs
        lengths = [
            self._model.dim_lengths[dim] if length is None else as_tensor_variable(length)
            for dim, length in zip(rv.type.dims[:n_batch], known, strict=False)
        ]
        if order != sorted(order):
            pairs = zip(parameters, op.ndims_params, strict=True)
            parameters = [_in_order(x, order[:n_batch], core) for x, core in pairs]
        _, written = op.make_node(rng, lengths or None, *parameters).outputs
        self._graph.replace(self[rv], written, import_missing=True)

    def model(self) -> Model:
        """Put the plain model together, in the order of the model's own."""
        model, plain_one = self._model, Model(check_bounds=self._model.check_bounds, model=None)
        # Shared: pm.set_data and set_dim change labels and lengths later.
        plain_one._coords, plain_one._dim_lengths = model._coords, model._dim_lengths
        for name, variable in model.named_vars.items():
            written = self[variable]
            if written in plain_one.named_vars.values():
                written = view_op(written)
            written.name = name
            if variable in model.free_RVs:
                plain_one.free_RVs.append(written)
                plain_one.create_value_var(
                    written,
                    transform=_plain_transform(model.rvs_to_transforms[variable], variable),
                    default_transform=None,
                )
                initial = model.rvs_to_initial_values[variable]
                initial = self[initial] if isinstance(initial, Variable) else initial
                plain_one.set_initval(written, initial)
            elif variable in model.observed_RVs:
                plain_one.observed_RVs.append(written)
                values = self[model.rvs_to_values[variable]]
                written.tag.observations = values
                plain_one.create_value_var(
                    written, transform=None, default_transform=None, value_var=values
                )
            elif variable in model.deterministics:
                plain_one.deterministics.append(written)
            elif variable in model.potentials:
                plain_one.potentials.append(written)
            elif variable in model.data_vars:
                plain_one.data_vars.append(written)
            if graphs := [self[x] for x in tagged_graphs(variable)]:
                known = hasattr(variable.tag, "released")
                tag(written, graphs, graphs[-1] if known else None)
            plain_one.add_named_variable(written, dims=model.named_vars_to_dims.get(name))
        return plain_one


def _in_order(parameter: TensorVariable, order: Sequence[int], core: int) -> TensorVariable:
    """Order the batch axes of a parameter; its last axes are its core's."""
    n_batch = parameter.type.ndim - core
    missing = len(order) - n_batch  # axes that broadcast, which come first
    batch = ["x" if axis < missing else axis - missing for axis in order]
    return parameter.dimshuffle(*batch, *range(n_batch, parameter.type.ndim))


def _plain_transform(transform: Transform | None, rv: Variable) -> Transform | None:
    """Return the transform of plain tensors for that of a variable."""
    if not isinstance(transform, named.DimTransform | plain.ChainedTransform):
        return transform
    dims = rv.type.dims
    match transform:
        case plain.ChainedTransform():
            parts = [_plain_transform(part, rv) for part in transform.transform_list]
            return plain.ChainedTransform(parts)
        case named.LogTransform():
            return plain.log
        case named.LogOddsTransform():
            return plain.logodds
        case _ if isinstance(transform, _CIRCULAR):
            return plain.circular
        case named.IntervalTransform() if transform.lower.ndim == transform.upper.ndim == 0:
            return plain.Interval(transform.lower.data, transform.upper.data)
        case named.SimplexTransform() if dims[-1] == transform.core_dim:
            return plain.simplex
        case named.ZeroSumTransform():
            return plain.ZeroSumTransform([dims.index(dim) - len(dims) for dim in transform.dims])
    raise NotImplementedError(
        f"'{rv.name}' has named dimensions and the transform {type(transform).__name__}, which "
        "isn't known for plain tensors. Take one of PyMC's, with its own dimension last, or write "
        "this variable with pm in the place of pymc.dims"
    )
