"""Slow or special methods: independent answers that judge the samplers, and serve small problems.

Nothing here imports a kernel or a step: an answer that shares code with what it checks would share
its mistakes. Only NumPy and SciPy are used, with three exceptions: rejection ABC from a
``pm.Model``, the package's own densities of mechanisms, and numba, which compiles the reversible
jumps.

An oracle, exact answers that samplers are judged by:

`dirichlet_table`
    The exact posterior of a table's cell probabilities when only noisy counts are published.

Methods of the literature, each with its own theory:

`rejection_abc`
    Independent draws from the posterior, by simulation and rejection.
`monte_carlo_em`
    Maximum likelihood by Monte Carlo EM, with the observed information.
`proportion_tests`, `fiducial_proportion`
    Tests and intervals for a proportion, given a noisy count or share.
`invariants`
    Releases made under exactly known totals, their privacy loss, and their likelihood.
`reversible_jump`
    Data augmentation over an unknown number of records, one record at a time.
"""

from pymc_dapper.reference._proportion import Interval, ProportionTest
from pymc_dapper.reference.dirichlet_table import (
    KnownTablePosterior,
    TablePosterior,
    gaussian_cell_loglik,
)
from pymc_dapper.reference.fiducial_proportion import (
    FiducialProportion,
    fiducial_cdf,
    fiducial_proportion,
    fiducial_test,
)
from pymc_dapper.reference.invariants import (
    InvariantDraws,
    ReleaseLaw,
    log_likelihood,
    privacy_loss,
    release_law,
    sample_under_invariants,
)
from pymc_dapper.reference.monte_carlo_em import EMEstimate, EMIteration, monte_carlo_em
from pymc_dapper.reference.proportion_tests import (
    NormalProportion,
    RandomizedResponseEstimate,
    UMPProportion,
    laplace_sd,
    normal_test,
    randomized_response,
    randomized_response_sd,
    ump_test,
    umpu_test,
)
from pymc_dapper.reference.rejection_abc import (
    RejectionDraws,
    mechanism_log_bound,
    rejection_abc,
    rejection_abc_model,
)
from pymc_dapper.reference.reversible_jump import ReversibleJumpDraws, reversible_jump
from pymc_dapper.reference.tree_least_squares import (
    TreeLeastSquares,
    table_tree_least_squares,
    tree_least_squares,
)

__all__ = [
    "EMEstimate",
    "EMIteration",
    "FiducialProportion",
    "Interval",
    "InvariantDraws",
    "KnownTablePosterior",
    "NormalProportion",
    "ProportionTest",
    "RandomizedResponseEstimate",
    "RejectionDraws",
    "ReleaseLaw",
    "ReversibleJumpDraws",
    "TablePosterior",
    "TreeLeastSquares",
    "UMPProportion",
    "fiducial_cdf",
    "fiducial_proportion",
    "fiducial_test",
    "gaussian_cell_loglik",
    "laplace_sd",
    "log_likelihood",
    "mechanism_log_bound",
    "monte_carlo_em",
    "normal_test",
    "privacy_loss",
    "randomized_response",
    "randomized_response_sd",
    "rejection_abc",
    "rejection_abc_model",
    "release_law",
    "reversible_jump",
    "sample_under_invariants",
    "table_tree_least_squares",
    "tree_least_squares",
    "ump_test",
    "umpu_test",
]
