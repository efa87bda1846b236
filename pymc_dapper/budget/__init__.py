r"""Privacy budgets, and the noise that they buy.

Three kinds of budget say how much a release may tell about one record. From the strongest:

`PureDP`
    epsilon-differential privacy.
`ZCDP`
    rho-zero-concentrated differential privacy.
`ApproxDP`
    (epsilon, delta)-differential privacy.

A mechanism that keeps a stronger kind keeps a weaker one, too. ``PureDP.to_zcdp``,
``PureDP.to_approx`` and ``ZCDP.to_approx`` compute it: they state what a release guarantees.
``ApproxDP.to_zcdp`` goes the other way: it finds a stronger budget that is enough. Use it to choose
noise, never to describe a release.

Privacy losses become noise scales only here: `laplace_scale`, `discrete_laplace_scale`,
`gaussian_sigma` and `analytic_gaussian_sigma`. Each has an inverse, from the noise to the budget.

Between zCDP and approximate differential privacy there are two bounds. "simple" is a closed form.
"tight" promises more for the same noise, and needs less noise for the same promise. Both hold, so
an approximate budget should come with the name of its bound. "simple" is the default: it takes more
noise, and never promises more than "tight".

A budget is for a kind of neighbouring data sets: those that differ in the values of one record
(``neighbours="replace"``, the default), or in the presence of one record
(``neighbours="add_remove"``). `to_replace` converts the second kind to the first. Budgets for
different neighbours don't add up.

A sensitivity is a plain number, in the norm of the noise; or the whole `sensitivity` of a
statistic, from which the norm is picked. A number known to be in another norm is refused, and so is
one for other neighbours than the budget's. A plain number is for the budget's own neighbours.

Throughout, log is the natural logarithm, and a privacy loss is measured in its units (nats).

References
----------
Balle, B. and Wang, Y.-X. (2018). Improving the Gaussian mechanism for differential privacy:
analytical calibration and optimal denoising. International Conference on Machine Learning 35.

Bun, M. and Steinke, T. (2016). Concentrated differential privacy: simplifications, extensions, and
lower bounds. Theory of Cryptography Conference. arXiv:1605.02065.

Canonne, C. L., Kamath, G. and Steinke, T. (2020). The discrete Gaussian for differential privacy.
Advances in Neural Information Processing Systems 33. arXiv:2004.00010.

Dwork, C., McSherry, F., Nissim, K. and Smith, A. (2006). Calibrating noise to sensitivity in
private data analysis. Theory of Cryptography Conference.

Dwork, C. and Roth, A. (2014). The algorithmic foundations of differential privacy. Foundations and
Trends in Theoretical Computer Science 9, 211-407.

Ghosh, A., Roughgarden, T. and Sundararajan, M. (2012). Universally utility-maximizing privacy
mechanisms. SIAM Journal on Computing 41, 1673-1693.
"""

from pymc_dapper.budget.bounds import Bound
from pymc_dapper.budget.kinds import ZCDP, ApproxDP, Budget, PureDP, check_pure, compose
from pymc_dapper.budget.numbers import TINY
from pymc_dapper.budget.scales import (
    analytic_gaussian_budget,
    analytic_gaussian_sigma,
    discrete_laplace_budget,
    discrete_laplace_scale,
    gaussian_budget,
    gaussian_sigma,
    laplace_budget,
    laplace_scale,
)

__all__ = [
    "TINY",
    "ZCDP",
    "ApproxDP",
    "Bound",
    "Budget",
    "PureDP",
    "analytic_gaussian_budget",
    "analytic_gaussian_sigma",
    "check_pure",
    "compose",
    "discrete_laplace_budget",
    "discrete_laplace_scale",
    "gaussian_budget",
    "gaussian_sigma",
    "laplace_budget",
    "laplace_scale",
]
