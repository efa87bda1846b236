"""People of a few latent classes, in each of which columns are independent."""

from typing import Any

import numpy as np
import pymc as pm

from pymc_dapper.checks import whole_number
from pymc_dapper.microdata.columns import read_columns

CLASS = "latent_class"

LEAST = 0.1
"""What each category of a class weighs a priori, beside the share that it has of all people."""


def latent_classes(release: Any, *, n: int | None = None, classes: int) -> pm.Model:
    """Write the model of people of latent classes behind a release of tables.

    Each person is of one class. Within a class, columns are independent. With enough classes, any
    joint distribution has this form. Tables of any number of columns may overlap in any way.

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
        With the probabilities of classes, ``p_latent_class``, and a table ``p_COLUMN`` of each
        column, with the dims ``("latent_class", COLUMN)``; with the people, ``person_latent_class``
        and ``person_COLUMN``; and with a Potential ``table_NAME`` for each table.

    Raises
    ------
    TypeError, ValueError
        If the release isn't one of tables with named dims, or contradicts ``n``.

    Notes
    -----
    Classes have a flat prior. A class's column lies a priori around the column of all people: its
    prior is Dirichlet(0.1 + the column's shares in the release), so that it weighs little more than
    one person (a unit information prior, Kass and Wasserman 1995). A flat prior would spread each
    class over categories that few people have. The shares contain the noise. They are computed when
    the model is written, and ``pm.set_data`` doesn't change them.

    References
    ----------
    Dunson, D. B. and Xing, C. (2009). Nonparametric Bayes modeling of multivariate categorical
    data. Journal of the American Statistical Association 104. Kass, R. E. and Wasserman, L. (1995).
    A reference Bayesian test for nested hypotheses and its relationship to the Schwarz criterion.
    Journal of the American Statistical Association 90.

    Examples
    --------
    >>> model = latent_classes(release, n=48_842, classes=50)
    >>> with model:
    ...     idata = pmd.sample()
    """
    columns = read_columns(release, n)
    classes = whole_number(classes, "classes", at_least=2)
    if CLASS in columns.labels:
        raise ValueError(f"release has a column '{CLASS}', the name of the classes: rename it")
    with pm.Model(coords={CLASS: range(classes), **columns.labels}) as model:
        number = columns.add_number()
        p = pm.Dirichlet(f"p_{CLASS}", np.ones(classes), dims=CLASS)
        room = columns.numbers[-1]
        latent = pm.Categorical(f"person_{CLASS}", p, shape=room)
        people = {}
        for column in columns.labels:
            weights = np.tile(LEAST + columns.shares(column), (classes, 1))
            p = pm.Dirichlet(f"p_{column}", weights, dims=(CLASS, column))
            people[column] = pm.Categorical(f"person_{column}", p[latent], shape=room)
        columns.add_tables(people, number)
    return model
