"""People of a few latent classes, in each of which columns are independent."""

from typing import Any

import numpy as np
import pymc as pm

from pymc_dapper.checks import whole_number
from pymc_dapper.microdata.columns import read_columns

CLASS = "latent_class"


def latent_classes(release: Any, *, n: int | None = None, classes: int) -> pm.Model:
    """Write the model of people of latent classes behind a release of tables.

    Each person is of one class. Within a class, columns are independent. With enough classes any
    joint distribution can be written so, and tables of any number of columns may overlap in any
    way.

    Parameters
    ----------
    release : Release
        Tables of the same people. The dims of a table are its columns.
    n : int, optional
        Number of people. If not given, it is a variable of the model, with a flat prior on what the
        tables' totals leave open.
    classes : int
        Number of classes, at least 2.

    Returns
    -------
    Model
        With a flat prior on all tables of probabilities: ``p_latent_class``, and ``p_COLUMN`` with
        the dims ``("latent_class", COLUMN)``; with the people, ``person_latent_class`` and
        ``person_COLUMN``; and with a Potential ``table_NAME`` for each
        table.

    Raises
    ------
    TypeError, ValueError
        If the release isn't one of tables with named dims, or contradicts ``n``.

    References
    ----------
    Dunson, D. B. and Xing, C. (2009). Nonparametric Bayes modeling of multivariate categorical
    data. Journal of the American Statistical Association 104.

    Examples
    --------
    >>> model = latent_classes(release, n=48_842, classes=20)
    >>> with model:
    ...     idata = pmd.sample()
    """
    columns = read_columns(release, n)
    classes = whole_number(classes, "classes", at_least=2)
    if CLASS in columns.labels:
        raise ValueError(f"release has a column '{CLASS}', the name of the classes: call it else")
    with pm.Model(coords={CLASS: range(classes), **columns.labels}) as model:
        number = columns.add_number()
        p = pm.Dirichlet(f"p_{CLASS}", np.ones(classes), dims=CLASS)
        room = columns.numbers[-1]
        latent = pm.Categorical(f"person_{CLASS}", p, shape=room)
        people = {}
        for column, size in columns.sizes.items():
            p = pm.Dirichlet(f"p_{column}", np.ones((classes, size)), dims=(CLASS, column))
            people[column] = pm.Categorical(f"person_{column}", p[latent], shape=room)
        columns.add_tables(people, number)
    return model
