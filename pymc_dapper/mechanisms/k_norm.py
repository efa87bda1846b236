"""K-norm mechanisms: noise on a vector as a whole, shaped by one norm."""

from dataclasses import dataclass, field
from numbers import Real
from typing import Any, Self

import numpy as np
import pymc as pm
import pytensor.tensor as pt
import scipy
from pymc.distributions.shape_utils import rv_size_is_none
from pytensor.tensor.variable import TensorVariable
from scipy.special import gammaln

from pymc_dapper import budget as accounting
from pymc_dapper.budget import PureDP
from pymc_dapper.checks import called_as, finite_number, shown, whole_number
from pymc_dapper.mechanisms.base import Mechanism, as_pair, single_scale
from pymc_dapper.sensitivity import Neighbours, Norm, Sensitivities, as_l1, in_norm

NORMS = (1, 2, np.inf)


@dataclass(frozen=True, eq=False, repr=False)
class KNormMechanism(Mechanism):
    """Noise on a vector, with density proportional to exp(-norm(noise) / scale).

    It gives pure differential privacy, by the statistic's sensitivity in the same norm: the
    distance by which one record can move the vector of d entries. The entries' noise is dependent,
    except for L1, which is the Laplace mechanism.

    The last axis of a statistic is the vector; other axes are separate releases.

    Attributes
    ----------
    scale : float
        Scale of the noise, in units of the statistic. The noise's norm has a Gamma distribution
        with shape d and this scale, so that it is d * scale on average.
    norm : {1, 2, inf}
        The norm: sum of absolute values, Euclidean, or largest absolute value (``np.inf``).
        Mechanisms fitted to other convex sets K aren't covered.

    Raises
    ------
    TypeError
        If ``scale`` isn't a single number.
    ValueError
        If ``scale`` isn't positive and finite, or if ``norm`` is another.

    See Also
    --------
    LInfMechanism : The one for the L-infinity norm.

    Notes
    -----
    The log-density of d entries is ``-norm(released - statistic) / scale - log(d! V scale^d)``,
    where V is the volume of the norm's unit ball: 2^d / d!, pi^(d/2) / Gamma(d/2 + 1) or 2^d.

    Clamped or rounded releases aren't supported: as the noise is joint, the likelihood would be
    integrals over faces or cubes in d dimensions.

    References
    ----------
    Hardt, M. and Talwar, K. (2010). On the geometry of differential privacy. Symposium on Theory of
    Computing 42, 705-714. Section 4.

    Awan, J. and Slavkovic, A. (2021). Structure and sensitivity in differential privacy: comparing
    K-norm mechanisms. Journal of the American Statistical Association 116, 935-954.

    Examples
    --------
    >>> KNormMechanism.calibrate(PureDP(0.5), sensitivity=3.0, norm=2)
    KNormMechanism(scale=6, norm=2, budget=PureDP(epsilon=0.5, one person changes))
    """

    scale: float
    norm: float

    _signature = "(d)->(d)"
    _why_no_rules = (
        "its noise is joint, and their likelihood an integral over several entries (with norm=1 it "
        "is the LaplaceMechanism, which takes rules)"
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", single_scale(self.scale))
        norm: Any = self.norm
        if isinstance(norm, bool) or not isinstance(norm, Real) or norm not in NORMS:
            raise ValueError(f"norm must be 1, 2 or np.inf, got {shown(self.norm)}")

    @classmethod
    @called_as("{owner}.calibrate(budget, sensitivity=...), with a budget such as pmd.PureDP(0.5)")
    def calibrate(
        cls,
        budget: PureDP,
        *,
        sensitivity: float | Sensitivities,
        neighbours: Neighbours | None = None,
        **options: Any,
    ) -> Self:
        """Choose the noise for a budget: its scale is sensitivity / epsilon.

        Parameters
        ----------
        budget : PureDP
            The budget.
        sensitivity : Sensitivities or float
            Of the statistic; its sensitivity in the mechanism's norm is used. Or that number. A
            larger number is valid, too: the L1 sensitivity for each norm, the L2 sensitivity for
            the L-infinity norm.
        neighbours : {"replace", "add_remove"}, optional
            Neighbouring data sets that the budget is for, if the budget doesn't say so itself.
        **options
            ``norm``, of a `KNormMechanism`.

        Returns
        -------
        KNormMechanism
            It keeps the budget.

        Raises
        ------
        TypeError
            If the budget isn't pure: the message names a pure budget that is enough for it.
        ValueError
            If the sensitivity isn't positive and finite, or doesn't go with the budget's
            neighbours.

        References
        ----------
        Hardt and Talwar (2010), Section 4.
        """
        accounting.check_pure(budget, cls.__name__)
        budget = budget.among(neighbours)
        number = _in_own_norm(sensitivity, options.get("norm", getattr(cls, "norm", None)))
        scale = accounting.laplace_scale(budget, sensitivity=number)
        return cls(scale, budget=budget, **options)

    def privacy_loss(self, *, sensitivity: float | Sensitivities) -> PureDP:
        """Budget that a release spends, by the statistic's sensitivity in the mechanism's norm.

        Parameters
        ----------
        sensitivity : Sensitivities or float
            The sensitivity.

        Returns
        -------
        PureDP
            Sensitivity / scale.

        Raises
        ------
        TypeError, ValueError
            If the sensitivity isn't a positive finite number.

        References
        ----------
        Hardt and Talwar (2010), Section 4.
        """
        number = _in_own_norm(sensitivity, self.norm)
        return accounting.laplace_budget(self.scale, sensitivity=number)

    def logp(self, released: Any, statistic: Any) -> TensorVariable:
        """Log-density of each released vector, given the statistic's: one axis less.

        As of each `Mechanism`; a scalar statistic raises a ValueError.
        """
        released, statistic = as_pair(released, statistic)
        _check_vector(statistic)
        steps = (released - statistic) / np.asarray(self.scale)
        radius = self._length(steps)
        d = steps.type.shape[-1]
        if d is not None:
            return -radius - np.asarray(self._log_normaliser(d, gammaln))
        return -radius - self._log_normaliser(steps.shape[-1], pt.gammaln)

    def _length(self, vectors: TensorVariable, **axis: bool) -> TensorVariable:
        match self.norm:
            case 1:
                return pt.abs(vectors).sum(axis=-1, **axis)
            case 2:
                square = pt.sqr(vectors).sum(axis=-1, **axis)
                somewhere = square > 0  # at 0, the root has no gradient
                return pt.switch(somewhere, pt.sqrt(pt.switch(somewhere, square, 1.0)), 0.0)
            case _:
                return pt.abs(vectors).max(axis=-1, **axis)

    def _log_normaliser(self, d: Any, log_gamma: Any) -> Any:
        """Log of d! V scale^d."""
        match self.norm:
            case 1:
                log_ball = d * np.log(2) - log_gamma(d + 1)
            case 2:
                log_ball = d / 2 * np.log(np.pi) - log_gamma(d / 2 + 1)
            case _:
                log_ball = d * np.log(2)
        return log_gamma(d + 1) + log_ball + d * np.log(self.scale)

    # Noise is a direction times a radius. Every vector whose density depends on its norm alone has
    # the same direction: Laplace, Gaussian or uniform entries, depending on the norm.

    def _random(self, statistic: TensorVariable, size: Any) -> TensorVariable:
        _check_vector(statistic)
        d = statistic.shape[-1]
        batch = statistic.shape[:-1] if rv_size_is_none(size) else size
        shape = pt.concatenate([pt.as_tensor(batch, dtype="int64", ndim=1), [d]])
        if self.norm == 1:
            return statistic + pm.Laplace.dist(0.0, np.asarray(self.scale), size=shape)
        law, start = (pm.Normal, 0.0) if self.norm == 2 else (pm.Uniform, -1.0)
        towards = law.dist(start, 1.0, size=shape)
        radius = pm.Gamma.dist(d, 1 / np.asarray(self.scale), size=batch)
        return statistic + radius[..., None] * towards / self._length(towards, keepdims=True)

    def _draw(self, statistic: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        _check_vector(statistic)
        *batch, d = statistic.shape
        if self.norm == 1:
            return np.asarray(statistic + rng.laplace(0.0, self.scale, size=statistic.shape))
        law, start = (rng.normal, 0.0) if self.norm == 2 else (rng.uniform, -1.0)
        towards = law(start, 1.0, size=statistic.shape)
        length = np.linalg.norm(towards, ord=self.norm, axis=-1, keepdims=True)
        radius = rng.gamma(d, self.scale, size=(*batch, 1))
        return np.asarray(statistic + radius * towards / length)

    def error_bound(self, k: int = 1, beta: float = 0.05) -> np.ndarray:
        """Bound on the norm of the noise on k entries, with probability 1 - beta.

        The noise on each single entry stays within the bound, too.

        Parameters
        ----------
        k : int
            Number of entries of the statistic.
        beta : float
            Probability that the noise is larger.

        Returns
        -------
        ndarray
            The bound, in the mechanism's norm and in units of the statistic: a quantile of the
            Gamma distribution.

        Raises
        ------
        ValueError
            If an argument is out of range.
        """
        k = whole_number(k, "k", at_least=1)
        beta = finite_number(beta, "beta", above=0, below=1)
        return np.asarray(scipy.stats.gamma.isf(beta, k, scale=self.scale))


@dataclass(frozen=True, eq=False, repr=False)
class LInfMechanism(KNormMechanism):
    """Noise on a vector, with density proportional to exp(-max(abs(noise)) / scale).

    The `KNormMechanism` of the L-infinity norm. Its sensitivity is the L-infinity one: the largest
    change that one record can make to any entry.

    Attributes
    ----------
    scale : float
        Scale of the noise, in units of the statistic. The largest of the d entries' noise has a
        Gamma distribution with shape d and this scale.

    Raises
    ------
    TypeError, ValueError
        As `KNormMechanism`.

    References
    ----------
    Steinke, T. and Ullman, J. (2016). Between pure and approximate differential privacy. Journal of
    Privacy and Confidentiality 7(2), 3-22. Section 4.

    Awan, J. and Slavkovic, A. (2021). Structure and sensitivity in differential privacy: comparing
    K-norm mechanisms. Journal of the American Statistical Association 116, 935-954.

    Examples
    --------
    >>> LInfMechanism.calibrate(PureDP(0.5), sensitivity=1)
    LInfMechanism(scale=2, budget=PureDP(epsilon=0.5, one person changes))
    """

    norm: float = field(default=np.inf, init=False)


def _in_own_norm(sensitivity: Any, norm: Any) -> Any:
    """Return a sensitivity in the norm of the noise; the mechanism refuses unknown norms later."""
    names: dict[Any, Norm] = {1: "l1", 2: "l2", np.inf: "linf"}
    if not isinstance(norm, Real) or norm not in names:
        return sensitivity
    return as_l1(in_norm(sensitivity, names[norm], f"K-norm noise with norm={norm:g}"))


def _check_vector(statistic: TensorVariable | np.ndarray) -> None:
    if statistic.ndim == 0:
        raise ValueError(
            "K-norm noise is added to a vector, but the statistic is a scalar. For a single number "
            "all of these norms are the same: use LaplaceMechanism"
        )
