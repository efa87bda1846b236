"""Synthetic data sets: each from another draw of the posterior."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pymc as pm
from pandas import DataFrame, Index
from pymc import Model
from pytensor.graph import Variable, ancestors
from pytensor.tensor.variable import TensorVariable
from xarray import DataArray, Dataset

from pymc_dapper.assignment.latent import Latent, find_latent
from pymc_dapper.checks import flag, known, options, random_generator, whole_number
from pymc_dapper.context import model_to_read
from pymc_dapper.diagnostics._result import check_kept, group
from pymc_dapper.graphs.view import view_of
from pymc_dapper.records.reading.finite import named_probabilities, support_of_entries
from pymc_dapper.releases.labels import in_order
from pymc_dapper.sizes.reading.exchangeable import what_ties


def synthetic_data(
    idata: Any,
    model: Model | None = None,
    *,
    sets: int = 20,
    n: int | None = None,
    records: Variable | Sequence[Variable] | None = None,
    labels: Mapping[str, Sequence[Any]] | None = None,
    latent: bool = False,
    random_seed: Any = None,
) -> list[DataFrame]:
    """Make synthetic data sets from a posterior, each from another of its draws.

    They are made from the release alone, so handing them on costs no further privacy. No single set
    is the truth: repeat an analysis on all of them, and combine its answers (:func:`combine`).

    Parameters
    ----------
    idata : DataTree
        The result of ``pmd.sample``.
    model : Model, optional
        The model that was sampled. Taken from the context if not given.
    sets : int, default 20
        How many data sets, at draws that are spread evenly over all chains.
    n : int, optional
        Number of rows of each. That of the model if not given.
    records : variable or sequence of variables, optional
        The columns. The model's latent records if not given (:func:`assign_steps`).
    labels : mapping of str to sequence, optional
        Labels of categories 0, 1, ..., by the name of the record variable. If not given, they are
        those of the probabilities' last dim, if that has some.
    latent : bool, default False
        Whether a set holds the latent records themselves, which ``pmd.sample`` keeps with
        ``keep_records=True``. If not, it holds new people, drawn given the parameters: the
        posterior predictive distribution.
    random_seed : int, Generator, ..., optional
        Seed of new people.

    Returns
    -------
    list of pandas.DataFrame
        With a column for each record variable; ``name[label]`` for variables with several numbers
        per record. If the labels are those of a dim, the column has the dim's name.

    Raises
    ------
    TypeError, ValueError
        If the result lacks what is needed, if there are fewer draws than sets, if ``n`` is given
        and the model has something of its own for each record, such as a covariate, or if labels
        don't fit the records.
    ReadingError
        If ``records`` aren't given and the model leaves doubt which they are.

    Warns
    -----
    UserWarning
        If a Potential that isn't a mechanism's depends on the records: new people are drawn without
        it, which is wrong if it is part of their distribution.

    Notes
    -----
    In a model with an unknown number of records (:func:`present`), each set has the number of rows
    of its draw.

    Examples
    --------
    >>> with model:
    ...     idata = pmd.sample()
    ...     people = pmd.synthetic_data(idata, sets=50, random_seed=1)
    """
    model = model_to_read(model)
    posterior = group(idata, "posterior").to_dataset()
    whole_number(sets, "sets", at_least=1)
    if n is not None:
        whole_number(n, "n", at_least=1)
    rng = random_generator(random_seed, "random_seed")
    found = find_latent(model, records, None)
    if not found.records:
        raise ValueError(
            "the model has no latent records, but tables of counts: draws of these are in the "
            "posterior, or in pm.sample_posterior_predictive"
        )
    names = [rv.name for rv in found.records]
    if any(rv.ndim == 0 for rv in found.records):
        raise ValueError("records must be variables with an entry for each person")
    given: Mapping[str, Sequence[Any]] = options(labels, "labels")
    known(given, names, "labels: there are no records")
    given = {name: x for name, x in given.items() if x is not None}
    for name, each in given.items():
        in_order(f"labels of '{name}'", each)
        given[name] = each = list(each)
        values = support_of_entries(model[name])
        if values is not None and values.start == 0 and len(each) != len(values):
            raise ValueError(
                f"labels: '{name}' has values 0 to {len(values) - 1}, and {len(each)} labels"
            )
    n_draws = posterior.sizes["chain"] * posterior.sizes["draw"]
    if sets > n_draws:
        raise ValueError(f"sets must be {n_draws} at most: idata has no more draws")
    if flag(latent, "latent"):
        if n is not None:
            raise ValueError("n is for new people: latent records are as many as the model has")
        check_kept(posterior, found.records, "pass keep_records=True to pmd.sample")
        columns = _at_draws(posterior, _spread(n_draws, sets))
        repeats = 1
    else:
        repeats = 1 if n is None else -(-n // _length(found))
        _check_new_people(model, posterior, found, repeats=repeats, n=n)
        at = np.repeat(_spread(n_draws, sets), repeats)
        columns = _new_people(model, _at_draws(posterior, at), found, rng)
    dims = _dims_of_categories(model, [rv for rv in found.records if rv.name not in given])
    given = {**{x: model.coords[dim] for x, dim in dims.items()}, **given}
    labelled: dict[str, np.ndarray] = {}
    for x in names:
        labelled |= _columns(model, x, dims.get(x, x), columns[x].values[0], given.get(x))
    numbers = _numbers(posterior, found, n, n_draws, sets)
    return [_frame(labelled, k, repeats, number) for k, number in enumerate(numbers)]


def _spread(n_draws: int, sets: int) -> np.ndarray:
    return np.linspace(0, n_draws - 1, sets).round().astype(int)


def _length(found: Latent) -> int:
    point = found.readings.point
    lengths = {point[found.readings.model.rvs_to_values[rv].name].shape[0] for rv in found.records}
    if len(lengths) > 1:
        raise ValueError("the records aren't equally many: pass those of one kind as records=")
    return int(lengths.pop())


def _check_new_people(
    model: Model, posterior: Dataset, found: Latent, *, repeats: int, n: int | None
) -> None:
    """Check that all is known that new people are drawn given."""
    above = set(ancestors([x for rv in found.records for x in rv.owner.inputs]))
    parameters = [rv for rv in model.free_RVs if rv in above and rv not in found.records]
    # PyMC would draw them from their prior, without a word.
    check_kept(posterior, parameters, "keep them in pmd.sample (var_names)")
    for rv in parameters:
        shape = posterior[rv.name].shape[2:]
        if not rv.type.is_super(rv.type.clone(shape=shape)):
            raise ValueError(f"idata is of another model: there, '{rv.name}' has shape {shape}")
    for potential in model.potentials:
        if not hasattr(potential.tag, "mechanism") and not set(found.records).isdisjoint(
            ancestors([potential])
        ):
            warnings.warn(
                f"the Potential '{potential.name}' is taken to be a release: new people are drawn "
                "without it. If it is part of their distribution, write it into that distribution",
                stacklevel=3,
            )
    if n is None:
        return
    view = view_of(model)
    values = [view.values[model.rvs_to_values[rv]] for rv in found.records]
    tied = what_ties(view, found.records, values, [])
    if tied is not None:
        raise ValueError(
            f"n can't be chosen: {tied}. Leave n out, for as many people as the model has"
        )


def _at_draws(posterior: Dataset, at: np.ndarray) -> Dataset:
    """Return a result of one chain: some draws of all chains."""
    chain, draw = np.divmod(at, posterior.sizes["draw"])
    chosen = posterior.isel(chain=DataArray(chain, dims="at"), draw=DataArray(draw, dims="at"))
    chosen = chosen.drop_vars(["chain", "draw"], errors="ignore").rename(at="draw")
    return chosen.expand_dims(chain=[0]).assign_coords(draw=np.arange(len(at)))


def _new_people(model: Model, draws: Dataset, found: Latent, rng: np.random.Generator) -> Dataset:
    names = [rv.name for rv in found.records]
    # PyMC would draw public columns anew, apart from the rows that they belong to.
    above = set(ancestors(found.records))
    public = {x.name: model.rvs_to_values[x].eval() for x in model.observed_RVs if x in above}
    with warnings.catch_warnings():
        # Of the release, new people have parameters alone, and these are always the posterior's.
        warnings.filterwarnings("ignore", message="The effect of Potentials|.* implicitly frozen")
        drawn = pm.sample_posterior_predictive(
            draws.drop_vars(names, errors="ignore"),
            model=pm.do(model, public) if public else model,
            var_names=names,
            random_seed=rng,
            progressbar=False,
        )
    return drawn["posterior_predictive"].to_dataset()


def _numbers(
    posterior: Dataset, found: Latent, n: int | None, n_draws: int, sets: int
) -> list[int]:
    """Return the number of rows of each set."""
    sizes = list(found.sizes)
    if n is not None or not sizes:
        return [n or _length(found)] * sets
    check_kept(posterior, sizes, "keep it in pmd.sample (var_names)")
    drawn = _at_draws(posterior, _spread(n_draws, sets))[sizes[0].name]
    return [int(number) for number in drawn.values[0]]


def _dims_of_categories(model: Model, rvs: Sequence[TensorVariable]) -> dict[str, str]:
    """Return the dim of each variable's categories, if it has labels and belongs to no other."""
    found: dict[str, str] = {}
    for rv in rvs:
        name = named_probabilities(model, rv)
        dim = None if name is None else model.named_vars_to_dims[name][-1]
        if dim is not None and model.coords.get(dim) is not None:
            found[rv.name] = dim
    dims = list(found.values())
    return {name: dim for name, dim in found.items() if dims.count(dim) == 1}


def _columns(
    model: Model, rv: str, name: str, values: np.ndarray, labels: Sequence[Any] | None
) -> dict[str, np.ndarray]:
    """Return a variable's columns by their names, shape (draws, n) each."""
    if labels is not None:
        # NumPy would make text of numbers beside text.
        known = np.asarray(Index(labels))
        if values.dtype.kind not in "iu" or not np.all((values >= 0) & (values < len(known))):
            raise ValueError(
                f"labels: '{rv}' has values other than 0 to {len(known) - 1}, which have labels"
            )
        values = known[values]
    if values.ndim == 2:
        return {name: values}
    flat = values.reshape(*values.shape[:2], -1)
    dims = model.named_vars_to_dims.get(rv, ())
    coords = model.coords.get(dims[1]) if len(dims) == 2 and dims[1] else None
    return {f"{name}[{x}]": flat[..., k] for k, x in enumerate(coords or range(flat.shape[2]))}


def _frame(columns: Mapping[str, np.ndarray], k: int, repeats: int, number: int) -> DataFrame:
    rows = slice(k * repeats, (k + 1) * repeats)
    return DataFrame({name: np.concatenate(x[rows])[:number] for name, x in columns.items()})
