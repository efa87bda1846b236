"""Privacy mechanisms: how values were released, and the likelihood of the released values.

An additive mechanism is defined once, by the law of its noise: a PyMC distribution, its tail and
its rounded form (`additive`). Its parameters, shape, draws, factor of the model and calibration
follow from this.

Rules say what the curator did to noisy values. They compose in the order in which they were applied
(`published`: ``mechanism.rounded(5).clamped(0, None)``). Each rule (`rules`) is monotone. So a
published value determines two ends between which the noisy value lay. A `Publication` goes back
through the rules to these ends (`spans`), with NumPy for checks and with PyTensor for the
likelihood. Rules don't know the noise, and a law doesn't know the rules: it has a density, a tail,
and the probability between two ends (`distributions._rounded`). A new rule needs a map forwards and
a map back. An end is stored as a number and an increment, so that a half isn't lost beside 1e17.
Whether an end belongs to its span matters on grids, and for the point masses of clamping.

A noise scale that is a variable of the model is a parameter. The mechanism lists it (`unknown`),
and the search for records leaves it out.

Offices' perturbations of counts (`perturbed_counts`) are a table of P(published | true count)
(`count_law`). Random rounding, cell keys and users' matrices make such tables. The last rows may
repeat for all larger counts, and columns are published values or differences. Entries are looked up
by `LookUp` (`backend.entries`), an operation on numbers, so every reader treats the law as a
function of one sum. The probability of a span is a difference of cumulated rows, taken from the
side on which it is small.
"""

from pymc_dapper.mechanisms.additive import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
)
from pymc_dapper.mechanisms.arguments import published_rows
from pymc_dapper.mechanisms.base import Mechanism
from pymc_dapper.mechanisms.cell_key import CellKey
from pymc_dapper.mechanisms.custom import CustomMechanism
from pymc_dapper.mechanisms.interval_quantile import IntervalQuantileMechanism
from pymc_dapper.mechanisms.k_norm import KNormMechanism, LInfMechanism
from pymc_dapper.mechanisms.noisy_max import NoisyMaxMechanism
from pymc_dapper.mechanisms.noisy_stats import NoisyStats
from pymc_dapper.mechanisms.quantile import QuantileMechanism
from pymc_dapper.mechanisms.random_rounding import RandomRounding
from pymc_dapper.mechanisms.randomized_response import RandomizedResponse
from pymc_dapper.mechanisms.transition import TransitionMechanism
from pymc_dapper.mechanisms.tulap import TulapMechanism

__all__ = [
    "CellKey",
    "CustomMechanism",
    "DiscreteGaussianMechanism",
    "DiscreteLaplaceMechanism",
    "GaussianMechanism",
    "IntervalQuantileMechanism",
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
