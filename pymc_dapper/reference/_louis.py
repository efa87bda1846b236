"""Observed information by Louis' formula, from a weighted sample.

The observed information is the mean of the complete data's information, given the release, less the
covariance of the score (Louis 1982, Journal of the Royal Statistical Society B 44, 226-233).
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class LouisMoments:
    """Score and information at theta, estimated from a weighted sample drawn there.

    `complete_information` and `missing_information` are the mean of the complete data's information
    and the covariance of their score. `score_mc_cov` is the Monte Carlo covariance of the score,
    `information_mc_se` the Monte Carlo standard error of each entry of the information, and `ess`
    the effective number of draws.
    """

    score: np.ndarray
    score_mc_cov: np.ndarray
    complete_information: np.ndarray
    missing_information: np.ndarray
    information_mc_se: np.ndarray
    ess: float

    @property
    def information(self) -> np.ndarray:
        """Observed information, by Louis."""
        return self.complete_information - self.missing_information

    @property
    def regular(self) -> bool:
        """Whether the information is positive definite."""
        found = self.information
        return bool(np.isfinite(found).all() and np.linalg.eigvalsh(found).min() > 0)

    @property
    def estimate_mc_se(self) -> np.ndarray:
        """Monte Carlo standard error of the zero of the score; nan if there is none."""
        if not self.regular:
            return np.full(len(self.score), np.nan)
        inverse = np.linalg.inv(self.information)
        return np.sqrt(np.diag(inverse @ self.score_mc_cov @ inverse))


def louis(weights: np.ndarray, score: np.ndarray, hessian: np.ndarray, ess: float) -> LouisMoments:
    """Weighted moments of the complete score and information, summed over the blocks.

    The weights of M draws for K independent blocks, shape (M, K), add up to 1 over the draws. Score
    (M, K, P) and Hessian (M, K, P, P) are those of the complete data's log-likelihood.
    """
    mean_score = np.einsum("mk,mkp->kp", weights, score)
    centred = score - mean_score
    spread = np.einsum("mkp,mkq->mkpq", centred, centred)
    terms = -hessian - spread
    means = np.einsum("mk,mkpq->kpq", weights, terms)
    squared = weights**2
    return LouisMoments(
        score=mean_score.sum(axis=0),
        score_mc_cov=np.einsum("mk,mkpq->pq", squared, spread),
        complete_information=-np.einsum("mk,mkpq->pq", weights, hessian),
        missing_information=np.einsum("mk,mkpq->pq", weights, spread),
        information_mc_se=np.sqrt(np.einsum("mk,mkpq->pq", squared, (terms - means) ** 2)),
        ess=ess,
    )
