"""plan(): how wide a posterior will be, before any budget is spent."""

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import pymc as pm
from matplotlib import pyplot
from xarray import DataTree

from pymc_dapper.checks import function, is_a, names, real_numbers
from pymc_dapper.html import aligned, table
from pymc_dapper.mechanisms import Mechanism
from pymc_dapper.plots.study import plot_study
from pymc_dapper.releases.query import Query
from pymc_dapper.releases.release import Release
from pymc_dapper.studies.study import study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HEADER = ("parameter", "mechanism", "epsilon", "width", "coverage", "releases")

type Draw = Callable[[np.random.Generator], tuple[Mapping[str, Any], Mapping[str, Any]]]
type Model = Callable[[Release], pm.Model]


def plan(
    draw: Draw,
    model: Model,
    mechanisms: Mapping[str, Callable[[float], Any]],
    epsilons: Sequence[float],
    *,
    replicates: int = 20,
    **options: Any,
) -> "Plan":
    """Find out how wide posteriors will be under several mechanisms, before any budget is spent.

    The function draws statistics that may be like the confidential ones, releases them by each
    mechanism at each budget, and analyses each release. No confidential value is needed.

    Parameters
    ----------
    draw : callable
        ``draw(rng)`` returns two dicts: a guess at the confidential statistics, by query; and the
        true values of parameters behind it, in the shapes of the model's variables of their names.
    model : callable
        ``model(release)`` returns the ``pm.Model`` that analyses a `Release`; its queries have the
        names of the statistics.
    mechanisms : mapping of str to callable
        The choices, by name: ``mechanism(epsilon)`` returns a mechanism, or a dict of them by
        query.
    epsilons : sequence of float
        Budgets to try: the numbers that the mechanisms are made from.
    replicates : int, default 20
        Number of simulated releases for each mechanism and budget.
    **options
        Those of :func:`pymc_dapper.study`: ``seed``, ``prob``, ``executor``, ``store`` and others.

    Returns
    -------
    Plan
        A table of widths and coverage, with a figure in a notebook. ``.figure.savefig("plan.png")``
        writes it to a file.

    Raises
    ------
    TypeError, ValueError
        If an argument can't be used, or as for `study`.

    Examples
    --------
    >>> pmd.plan(draw, model, {"Laplace": laplace, "Gaussian": gaussian}, [0.5, 1, 2])
    """
    function(draw, "draw", "draw(rng)")
    function(model, "model", "model(release)")
    is_a(mechanisms, Mapping, "mechanisms must be a dict of functions by name")
    labels = list(names(list(mechanisms), "mechanisms"))
    for label, each in mechanisms.items():
        function(each, f"mechanisms: {label!r}", "mechanism(epsilon)")
    budgets = real_numbers(epsilons, "epsilons", vector=True, positive=True)
    planned = _Planned(draw, model, dict(mechanisms))
    grid = {"mechanism": labels, "epsilon": budgets.tolist()}
    return Plan(study(planned.simulate, planned.build, grid, replicates=replicates, **options))


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """How wide posteriors will be under several mechanisms and budgets, as `plan` found.

    Parameters
    ----------
    study : DataTree
        As of :func:`pymc_dapper.study`, with the settings ``mechanism`` and ``epsilon``.
    """

    study: DataTree

    @cached_property
    def figure(self) -> "Figure":
        """Widths of intervals against the budget, a line for each mechanism; and coverage.

        It is that of :func:`pymc_dapper.plot_study`, which has options: ``plot_study(plan.study)``.
        """
        return plot_study(self.study)

    def __repr__(self) -> str:
        return "\n".join([self._title(), *aligned([HEADER, *self._rows()])])

    def _repr_html_(self) -> str:
        written = table(self._title(), HEADER, self._rows())
        if not self.study.children:
            return written
        picture = BytesIO()
        self.figure.savefig(picture, format="png", bbox_inches="tight")
        # A notebook would show pyplot's figure a second time.
        pyplot.close(self.figure)
        code = b64encode(picture.getvalue()).decode()
        return f'{written}<img src="data:image/png;base64,{code}" alt="{self._title()}">'

    def _title(self) -> str:
        return f"Width and coverage of {100 * self.study.attrs['prob']:g} % intervals"

    def _rows(self) -> list[tuple[str, ...]]:
        """Return each parameter's mean over its entries and over replicates."""
        done = self.study.dataset["status"] == "done"
        rows: list[tuple[str, ...]] = []
        for name in self.study.children:
            found = self.study[name].dataset
            for mechanism in done["mechanism"].values:
                for epsilon in done["epsilon"].values:
                    at = {"mechanism": mechanism, "epsilon": epsilon}
                    cell, n_done = found.sel(at), int(done.sel(at).sum())
                    keys = ("width", "coverage", "coverage_mcse")
                    width, coverage, mcse = (float(cell[key].mean()) for key in keys)
                    told = f"{width:.2g}", f"{coverage:.2f} ± {mcse:.2f}"
                    rows.append((str(name), str(mechanism), f"{epsilon:g}", *told, str(n_done)))
        return rows


@dataclass(frozen=True)
class _Planned:
    """The functions of a study."""

    draw: Draw
    model: Model
    mechanisms: Mapping[str, Callable[[float], Any]]

    def simulate(
        self, rng: np.random.Generator, mechanism: str, epsilon: float
    ) -> tuple[dict[str, Any], Mapping[str, Any]]:
        """Draw statistics, and release them."""
        statistics, truth = self.draw(rng)
        by_query = self._by_query(mechanism, epsilon, list(statistics))
        released = {name: by_query[name].release(x, rng) for name, x in statistics.items()}
        return released, truth

    def build(self, released: Mapping[str, Any], mechanism: str, epsilon: float) -> pm.Model:
        """Write the model of a release."""
        by_query = self._by_query(mechanism, epsilon, list(released))
        queries = [Query(name, values, by_query[name]) for name, values in released.items()]
        return self.model(Release(queries))

    def _by_query(
        self, mechanism: str, epsilon: float, queries: Sequence[str]
    ) -> Mapping[str, Mechanism]:
        made = self.mechanisms[mechanism](epsilon)
        by_query = made if isinstance(made, Mapping) else dict.fromkeys(queries, made)
        for query in queries:
            rule = f"mechanisms: {mechanism!r} must give a Mechanism for '{query}'"
            is_a(by_query.get(query), Mechanism, rule)
        return by_query
