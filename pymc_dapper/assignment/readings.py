"""Readings of a model, each made once, for the choice of its steps."""

from collections.abc import Callable, Sequence
from typing import Any

from pymc import Model
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.conditional import Conditional, read_conditionals
from pymc_dapper.counts.reading.model import CountReading, check_counts, read_counts
from pymc_dapper.graphs.asked_once import initial_point
from pymc_dapper.graphs.errors import NotConjugateError, ReadingError
from pymc_dapper.graphs.present import Present
from pymc_dapper.records.reading.model import ModelReading, read_model
from pymc_dapper.sizes.reading.model import SizeReading, find_sizes, read_size
from pymc_dapper.steps.building import telling_why
from pymc_dapper.steps.progress import stage


class Readings:
    """Readings of a model for the choice of its steps, each made once.

    The model must not change meanwhile, except for where its chains start.
    """

    def __init__(self, model: Model):
        self.model = model
        with telling_why("DapperStep", model.free_RVs):
            self.point = initial_point(model)
        self._made: dict[tuple[Any, ...], Any] = {}

    def records(self, rvs: Sequence[TensorVariable]) -> ModelReading:
        """Read how the model depends on records."""
        values = [self.model.rvs_to_values[rv] for rv in rvs]
        return self._once("DapperStep", rvs, lambda: read_model(self.model, values, self.point))

    def counts(
        self, rvs: Sequence[TensorVariable], marginalised: Sequence[Conditional] = ()
    ) -> CountReading:
        """Read how the model depends on counts, with some parameters marginalised."""
        values = [self.model.rvs_to_values[rv] for rv in rvs]
        return self._once(
            "CountStep", rvs, lambda: read_counts(self.model, values, marginalised), *marginalised
        )

    def sizes(self) -> dict[TensorVariable, list[TensorVariable]]:
        """Find the numbers of records that aren't known, and the records of each."""
        return self._once("SizeStep", self.model.free_RVs, lambda: find_sizes(self.model), "all")

    def size(self, rv: TensorVariable) -> SizeReading:
        """Read how the model depends on a number of records."""
        value = self.model.rvs_to_values[rv]
        return self._once("SizeStep", [rv], lambda: read_size(self.model, value))

    def can_be_counted(self, rv: TensorVariable) -> bool:
        """Whether a variable is a count on which something else in the model depends."""
        try:
            check_counts(self.model, [rv])
            self.counts([rv])
        except ReadingError:
            return False
        return True

    def conditionals(
        self, rvs: Sequence[TensorVariable], present: Present | None = None
    ) -> list[Conditional]:
        """Read the conditionals of parameters; empty if none can be drawn from."""
        present = present or {}
        if not rvs:
            return []
        try:
            return self._once(
                "ConjugateStep", rvs, lambda: read_conditionals(self.model, rvs, present), *present
            )
        except NotConjugateError:
            return []

    def _once(
        self, step: str, rvs: Sequence[TensorVariable], read: Callable[[], Any], *besides: Any
    ) -> Any:
        """Read for a step, given its variables and what else the reading depends on."""
        key = (step, *rvs, *besides)
        if key not in self._made:
            stage("Reading the model")
            try:
                with telling_why(step, rvs):
                    self._made[key] = read()
            except ReadingError as error:
                self._made[key] = error
        made = self._made[key]
        if isinstance(made, ReadingError):
            raise made
        return made
