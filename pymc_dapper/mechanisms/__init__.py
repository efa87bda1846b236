"""Privacy mechanisms: what was published, and its likelihood.

An additive mechanism is said once, by the law of its noise: a PyMC distribution, its tail and its
rounded form (`additive`). Parameters, shape, draws, the model's factor and the calibration follow.

What the curator did to noisy values is said by rules, which compose in their order (`published`:
``mechanism.rounded(5).clamped(0, None)``). Each rule (`rules`) keeps the order of values. So a
published value says between which two ends the noisy value lay, and a `Publication` goes back
through the rules to these ends (`spans`), in NumPy for checks and in PyTensor for the likelihood.
Rules know no noise, and a law knows no rule: it has a density, a tail, and the probability between
two ends (`distributions._rounded`). A new rule needs its way there and its way back. An end is kept
as a number and what is added to it, so that a half isn't lost beside 1e17. Whether an end belongs
to a span matters for point masses left by clamping, and on grids.

A noise scale that is a variable of the model is a parameter: the mechanism names it (`unknown`),
and the search for records leaves it out.

What offices do to counts (`perturbed_counts`) is a table of P(published | true count)
(`count_law`); random rounding, cell keys and users' matrices make such tables. The last rows may
serve all larger counts, and columns are published values or differences. `LookUp`
(`backend.entries`), an operation on numbers, looks entries up, so every reader takes it for a
function of one sum. A span's probability is a difference of cumulated rows, from the side on which
it is small.
"""

from pymc_dapper.mechanisms.additive import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    TulapMechanism,
)
from pymc_dapper.mechanisms.arguments import published_rows
from pymc_dapper.mechanisms.base import Mechanism
from pymc_dapper.mechanisms.cell_key import CellKey
from pymc_dapper.mechanisms.custom import CustomMechanism
from pymc_dapper.mechanisms.k_norm import KNormMechanism, LInfMechanism
from pymc_dapper.mechanisms.noisy_max import NoisyMaxMechanism
from pymc_dapper.mechanisms.noisy_stats import NoisyStats
from pymc_dapper.mechanisms.quantile import QuantileMechanism
from pymc_dapper.mechanisms.random_rounding import RandomRounding
from pymc_dapper.mechanisms.randomized_response import RandomizedResponse
from pymc_dapper.mechanisms.transition import TransitionMechanism

__all__ = [
    "CellKey",
    "CustomMechanism",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "GaussianMechanism",
    "KNormMechanism",
    "LInfMechanism",
    "LaplaceMechanism",
    "Mechanism",
    "NoisyMaxMechanism",
    "NoisyStats",
    "QuantileMechanism",
    "RandomRounding",
    "RandomizedResponse",
    "TransitionMechanism",
    "TulapMechanism",
    "published_rows",
]
