"""Nearest whole numbers whose linear functions lie within limits."""

import numpy as np
import scipy
from scipy import sparse

Ends = tuple[np.ndarray, np.ndarray]


def nearest_counts(matrix: sparse.csr_array, ends: Ends, present: np.ndarray) -> np.ndarray | None:
    """Change counts as little as possible to satisfy ``low <= matrix @ counts <= high``.

    Parameters
    ----------
    matrix : csr_array, shape (m, n)
        Coefficients.
    ends : tuple of ndarray, each of shape (m,)
        The ends ``low`` and ``high``; infinite if there is none.
    present : ndarray of int64, shape (n,)
        The counts.

    Returns
    -------
    ndarray of int64, shape (n,), or None
        Non-negative counts with the least sum of distances; None if there are none.
    """
    n = len(present)
    at_present = matrix @ present
    low, high = (end - at_present for end in ends)
    identity = sparse.eye_array(n, format="csr")
    # Minimise the sum of |counts - present|, with counts = present + more - less.
    sums = sparse.hstack([matrix, -matrix], format="csr")
    changes = sparse.hstack([identity, -identity], format="csr")
    limit = scipy.optimize.LinearConstraint
    limits = [limit(sums, low, high), limit(changes, -present, np.inf)]
    found = scipy.optimize.milp(np.ones(2 * n), constraints=limits, integrality=np.ones(2 * n))
    if found.x is None:
        return None
    change = np.round(found.x).astype(np.int64)
    counts = present + change[:n] - change[n:]
    at_counts = matrix @ counts
    fits = np.all((at_counts >= ends[0]) & (at_counts <= ends[1]))
    return counts if fits and counts.min(initial=0) >= 0 else None
