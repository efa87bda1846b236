"""People each of whose columns depends on the columns before it by a multinomial logit."""

from collections.abc import Collection, Sequence
from typing import Any

import pymc as pm

from pymc_dapper.microdata.columns import read_columns


def regressions(release: Any, *, n: int | None = None) -> pm.Model:
    """Write a sequence of regressions for the people behind a release of tables.

    Columns follow one another. Each depends, by a multinomial logit, on the earlier columns that
    share a released table with it. Each such table has its own effects, and they add up. So a model
    of all pairs of many columns has a weight for each released cell, and forms no joint table.

    Parameters
    ----------
    release : Release
        Tables of the same people. The dims of a table are its columns.
    n : int, optional
        Number of people. If not given, it is a variable of the model, with a flat prior on what the
        tables' totals leave open.

    Returns
    -------
    Model
        With the weights ``w_COLUMN`` of each column's categories, and ``w_COLUMN_OTHERS`` for each
        table with earlier columns; its dims are these columns, and last its own. If two would have
        one name, the second's ends in ``_``. A category's probability is proportional to the
        product of its weights. The people are ``person_COLUMN``. Each table has a Potential
        ``table_NAME``, and the share of people in its cells is ``share_NAME``.

    Raises
    ------
    TypeError, ValueError
        If the release isn't one of tables with named dims, or contradicts ``n``.

    Notes
    -----
    Columns with most categories come first, because each column that they depended on would cost
    most time. Weights are exponentials of a logit's coefficients. Their prior is exponential, with
    mean 1. Given the people they are drawn as Caron and Doucet (2012) have it. In a table of three
    columns or more, each combination of the earlier columns has an effect of its own on the last.

    References
    ----------
    Raghunathan, T. E., Lepkowski, J. M., Van Hoewyk, J. and Solenberger, P. (2001). A multivariate
    technique for multiply imputing missing values using a sequence of regression models. Survey
    Methodology 27. Caron, F. and Doucet, A. (2012). Efficient Bayesian inference for generalized
    Bradley-Terry models. Journal of Computational and Graphical Statistics 21(1).

    Examples
    --------
    >>> model = regressions(release, n=48_842)
    >>> with model:
    ...     idata = pmd.sample()
    """
    columns = read_columns(release, n)
    sizes = columns.sizes

    def weights_of(column: str, *given: str) -> Any:
        name = "_".join(["w", column, *given])
        while name in model.named_vars:  # of columns "a", "b" and "a_b"
            name += "_"
        return pm.Exponential(name, 1.0, dims=(*given, column))

    order = sorted(sizes, key=lambda column: sizes[column], reverse=True)
    with pm.Model(coords=columns.labels) as model:
        number = columns.add_number()
        room = columns.numbers[-1]
        people: dict[str, Any] = {}
        for column in order:
            weights = weights_of(column)
            for given in effects(column, list(people), [query.dims for query in columns.tables]):
                weights = weights * weights_of(column, *given)[tuple(people[x] for x in given)]
            p = weights / weights.sum(axis=-1, keepdims=True)
            people[column] = pm.Categorical(f"person_{column}", p, shape=room)
        columns.add_tables(people, number)
        columns.add_shares(people, number)
    return model


def effects(
    column: str, before: Sequence[str], released: Collection[Sequence[str]]
) -> list[tuple[str, ...]]:
    """Say which columns before it have a joint effect on a column: the most that were released."""
    together = {tuple(x for x in before if x in table) for table in released if column in table}
    return sorted(x for x in together if x and not any(set(x) < set(y) for y in together))
