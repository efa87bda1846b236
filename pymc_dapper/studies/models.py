"""Models with their steps, kept so that a model that differs in its data only isn't built again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pymc import Model
from pymc.step_methods import BlockedStep
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph import Variable, graph_inputs
from pytensor.tensor.random.type import RandomGeneratorType

from pymc_dapper.assignment.parameters import assign_parameter_steps
from pymc_dapper.assignment.steps import assign_steps
from pymc_dapper.backend.internals import equal_dataclass_values
from pymc_dapper.counts.step import CountStep
from pymc_dapper.graphs.dependence import records_seen
from pymc_dapper.graphs.rebuild import same_function

MODELS_KEPT = 8
"""Number of models that a worker keeps, for settings that are likely to return."""


@dataclass(frozen=True)
class Structure:
    """Everything about a model that a sampler depends on.

    ``names`` has what isn't in graphs: names, dims and their lengths, coordinates, initial values.
    ``graphs`` define how variables are drawn, and the terms of the log-density. ``inputs`` are the
    graphs' own: value variables, random generators, data, lengths of dims. ``data`` are the
    ``pm.Data``, by name, whose values may differ.
    """

    model: Model
    names: tuple[Any, ...]
    graphs: list[Variable]
    inputs: list[Variable]
    data: list[SharedVariable]

    @classmethod
    def of(cls, model: Model) -> "Structure":
        """Read it off a model."""
        drawn = [*model.free_RVs, *model.deterministics]
        graphs = [*drawn, *model.logp(sum=False)]
        data = sorted(model.data_vars, key=lambda x: x.name)
        lengths = {k: x for k, x in model.dim_lengths.items() if isinstance(x, SharedVariable)}
        generators = [x for x in graph_inputs(graphs) if isinstance(x.type, RandomGeneratorType)]
        variables = [*drawn, *model.observed_RVs, *model.potentials, *model.value_vars]
        names = (
            [x.name for x in variables],
            model.coords,
            model.named_vars_to_dims,
            [_comparable(model.rvs_to_initial_values[rv]) for rv in model.free_RVs],
            model.check_bounds,
            [(x.name, x.get_value(borrow=True).shape) for x in data],
            {name: int(length.get_value()) for name, length in lengths.items()},
        )
        inputs = [*model.value_vars, *generators, *data, *lengths.values()]
        return cls(model, names, graphs, inputs, data)

    def equals(self, other: "Structure") -> bool:
        """Whether two models differ in the values of their data at most."""
        graph, of_other = ((x.inputs, x.graphs) for x in (self, other))
        return self.names == other.names and same_function(graph, of_other)


def _comparable(initial_value: Any) -> Any:
    """Make something that == compares of an initial value; a graph equals only itself."""
    if initial_value is None or isinstance(initial_value, str | Variable):
        return initial_value
    return np.asarray(initial_value).tolist()


class PreparedModel:
    """A model with its steps, ready for one cell after another.

    The options are arguments of :func:`pymc_dapper.assign_steps`, records and counts by name.
    """

    def __init__(self, structure: Structure, options: Mapping[str, Any]):
        self.model = structure.model
        self._options = options
        self.steps = _assign(self.model, options)
        self._structure = structure
        self._fresh = [step.sampling_state for step in self.steps]
        self._functions: dict[tuple[str, ...], Callable[..., Any]] = {}

    def matches(self, structure: Structure, options: Mapping[str, Any]) -> bool:
        """Whether another model is the same except for the values of its data."""
        return equal_dataclass_values(self._options, options) and self._structure.equals(structure)

    def take_over(self, structure: Structure) -> None:
        """Take over a model's data, and reset the steps to their state after construction."""
        for mine, new in zip(self._structure.data, structure.data, strict=True):
            mine.set_value(new.get_value())
        for step, state in zip(self.steps, self._fresh, strict=True):
            step.sampling_state = state

    def values(self, names: Sequence[str], point: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Evaluate variables at a point of the model's value variables."""
        function = self._functions.get(tuple(names))
        if function is None:
            graphs = self.model.replace_rvs_by_values([self.model[name] for name in names])
            function = self._functions[tuple(names)] = self.model.compile_fn(
                graphs, inputs=self.model.value_vars, on_unused_input="ignore"
            )
        return list(function(point))


@dataclass
class ModelCache:
    """The models that a worker keeps, those used last in front."""

    prepared: list[PreparedModel] = field(default_factory=list)

    def prepare(self, structure: Structure, options: Mapping[str, Any]) -> PreparedModel:
        """Find a model that differs from a cell's in its data only, and take over these.

        If there is none, make a new one.
        """
        for kept in self.prepared:
            if kept.matches(structure, options):
                self.prepared.remove(kept)
                self.prepared.insert(0, kept)
                kept.take_over(structure)
                return kept
        new = PreparedModel(structure, options)
        # A CountStep uses the data when it is built, for a first guess at its proposals: a further
        # run would be another than one with a step that was built for it.
        if not any(isinstance(step, CountStep) for step in new.steps):
            self.prepared = [new, *self.prepared[: MODELS_KEPT - 1]]
        return new


def _assign(model: Model, options: Mapping[str, Any]) -> list[BlockedStep]:
    """Choose steps; steps for parameters alone only if nothing is latent."""
    options = dict(options)
    for kind in ("records", "counts"):
        if kind in options:
            names = options[kind]
            names = [names] if isinstance(names, str) else names
            options[kind] = [model[name] for name in names]
    if "target_accept" in options:
        options["nuts"] = {**options.get("nuts", {}), "target_accept": options.pop("target_accept")}
    if options.get("records") or options.get("counts") or records_seen(model):
        return assign_steps(model=model, progressbar=False, **options)
    wanted = ("conjugate", "nuts", "compile_kwargs")
    of_parameters = {name: options[name] for name in wanted if name in options}
    return assign_parameter_steps([], model, **of_parameters)
