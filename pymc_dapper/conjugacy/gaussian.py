"""Normal priors of parameters in linear means of normal variables: the joint normal conditional.

Every factor, prior or likelihood, is a normal density of a residual r(theta) = r + J' theta. With
residuals in units of their standard deviation, theta has the precision sum JJ' and the mean that
solves (sum JJ') mean = - sum J r (Gelman et al., Bayesian Data Analysis, section 14.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import pytensor.tensor as pt
from pytensor.graph import Variable, vectorize_graph
from pytensor.tensor.linalg import cholesky, solve_triangular
from pytensor.tensor.random.basic import LogNormalRV, MvNormalRV, NormalRV
from pytensor.tensor.variable import TensorVariable

from pymc_dapper.conjugacy.children import Child
from pymc_dapper.conjugacy.families import Family, drawn_by
from pymc_dapper.conjugacy.kernels import families as kernels
from pymc_dapper.conjugacy.relations import Affine, Independent, Power, read_relations
from pymc_dapper.conjugacy.totals import total
from pymc_dapper.graphs.errors import NotConjugateError
from pymc_dapper.graphs.rebuild import rebuild

NORMAL = (NormalRV, MvNormalRV)
"""Priors that conditionals given normal children have the form of."""


@dataclass(frozen=True, eq=False)
class Residual:
    """A normal residual, value minus mean, that is linear in theta."""

    value: TensorVariable
    mean: TensorVariable
    """Its two parts, in terms of theta."""
    spread: TensorVariable
    """Standard deviation of each entry; or if ``joint``, the covariance matrix of the last axis."""
    joint: bool
    """Whether the entries of the last axis are correlated."""
    entries: TensorVariable | None
    """The entry of theta on which each entry depends, if there is only one."""

    def at(self, values: dict[Variable, Variable]) -> TensorVariable:
        """Evaluate the residual at values of theta."""
        value, mean = rebuild([self.value, self.mean], values)
        return value - mean


def read_residual(child: Child, thetas: Sequence[TensorVariable]) -> Residual:
    """Read a child of parameters, or one of these itself, as a normal residual linear in them.

    Raises
    ------
    NotConjugateError
        If the child isn't normal, if its spread depends on the parameters, or if its mean isn't
        linear in them.
    """
    if not isinstance(child.op, NormalRV | LogNormalRV | MvNormalRV):
        raise NotConjugateError(
            f"the likelihood of '{child.name}' ({child.family}) isn't conjugate to a normal prior; "
            "those of Normal, MvNormal and LogNormal are"
        )
    mean, spread = child.parameters
    value = pt.log(child.value) if isinstance(child.op, LogNormalRV) else child.value
    try:
        of_spread, of_value, of_mean = read_relations([spread, value, mean], thetas, positive=False)
    except NotConjugateError as error:
        raise NotConjugateError(
            f"{child.name_parameter(0)} isn't a linear function of it, or {child.name_parameter(1)}"
            f" depends on it: {error}"
        ) from None
    if not isinstance(of_spread, Independent):
        raise NotConjugateError(
            f"{child.name_parameter(1)} depends on it, so the density isn't normal as a function "
            "of it"
        )
    if isinstance(of_mean, Power) and of_mean.exponent != 1:
        names = " and ".join(str(theta.name) for theta in thetas)
        raise NotConjugateError(
            f"{child.name_parameter(0)} is c * {names}^{of_mean.exponent:g}, which isn't linear"
        )
    parts = [r for r in (of_value, of_mean) if not isinstance(r, Independent)]
    entries = None
    if len(parts) == 1 and isinstance(parts[0], Affine | Power):
        entries = parts[0].entries
    return Residual(value, mean, spread, isinstance(child.op, MvNormalRV), entries)


def entrywise_normal(residuals: Sequence[Residual], theta: TensorVariable) -> list[TensorVariable]:
    """Mean and standard deviation of a parameter with conditionally independent entries.

    Of the residuals none is joint, and all know their ``entries``.
    """
    zero, one = pt.zeros(theta.type.shape), pt.ones(theta.type.shape)
    precision, weighted = [], []
    for residual in residuals:
        assert residual.entries is not None
        at_zero = residual.at({theta: zero})
        # Parts apart: the difference of large values would lose digits of a small slope.
        parts = [residual.value, residual.mean]
        at_ends = (rebuild(parts, {theta: end}) for end in (zero, one))
        of_value, of_mean = (b - a for a, b in zip(*at_ends, strict=True))
        shape = pt.broadcast_shape(at_zero, residual.spread)
        slope = pt.broadcast_to((of_value - of_mean) / residual.spread, shape)
        rest = pt.broadcast_to(at_zero / residual.spread, shape)
        precision.append(total(slope**2, residual.entries, theta))
        weighted.append(total(slope * rest, residual.entries, theta))
    total_precision = pt.add(*precision)
    return [-pt.add(*weighted) / total_precision, total_precision**-0.5]


def joint_normal(
    residuals: Sequence[Residual], thetas: Sequence[TensorVariable]
) -> list[TensorVariable]:
    """Put all residuals, as functions of all parameters together, in units of their sd.

    Returns a matrix of shape (d + 1, n): slopes J, shape (d, n), and below them residuals r, such
    that all densities together are exp(-|r + J' theta|^2 / 2), with theta the parameters flattened,
    one after the other.
    """
    ends = np.cumsum([prod(x.type.shape) for x in thetas])
    dim = ends[-1]
    zeros: dict[Variable, Variable] = {x: pt.zeros(x.type.shape) for x in thetas}
    # One unit vector of all parameters for each step along the new first axis.
    units: dict[Variable, Variable] = {
        x: pt.constant(axes.reshape((dim, *x.type.shape)))
        for x, axes in zip(thetas, np.split(np.eye(dim), ends[:-1], axis=1), strict=True)
    }
    designs, rests = [], []
    for residual in residuals:
        slopes: TensorVariable = pt.zeros(())
        for part, sign in ((residual.value, 1.0), (residual.mean, -1.0)):
            [start] = rebuild([part], zeros)
            moved = vectorize_graph(part, units)
            if moved is not part:
                slopes = slopes + sign * _pad(moved - start, residual)
        design, rest = _whiten(residual, slopes, residual.at(zeros), dim)
        designs.append(design)
        rests.append(rest)
    columns = [pt.concatenate([a, b[None]]) for a, b in zip(designs, rests, strict=True)]
    return [pt.concatenate(columns, axis=1)]


def _pad(slopes: TensorVariable, residual: Residual) -> TensorVariable:
    """Insert axes after the first, so that slopes broadcast against the residual."""
    ndim = max(residual.value.type.ndim, residual.mean.type.ndim)
    missing = ndim - (slopes.type.ndim - 1)
    return slopes.dimshuffle(0, *["x"] * missing, *range(1, slopes.type.ndim))


def _whiten(
    residual: Residual, slopes: TensorVariable, rest: TensorVariable, dim: int
) -> tuple[TensorVariable, TensorVariable]:
    """Put a residual and its slopes in units of its standard deviations, one column per entry."""
    if residual.joint:
        lower = cholesky(residual.spread)
        slopes = pt.broadcast_to(slopes, (dim, *rest.shape))
        design = solve_triangular(lower, slopes, lower=True, b_ndim=1)
        rest = solve_triangular(lower, rest, lower=True, b_ndim=1)
    else:
        shape = pt.broadcast_shape(rest, residual.spread)
        design = pt.broadcast_to(slopes / residual.spread, (dim, *shape))
        rest = pt.broadcast_to(rest / residual.spread, shape)
    return design.reshape((dim, -1)), rest.flatten()


def draw_joint(rng: np.random.Generator, slopes_and_residuals: np.ndarray) -> np.ndarray:
    """Draw from the joint normal of density exp(-|residuals + slopes' theta|^2 / 2)."""
    # By the QR decomposition of the slopes: their products would square the condition number.
    dim, triangle = len(slopes_and_residuals) - 1, np.linalg.qr(slopes_and_residuals.T, mode="r")
    # |residuals + slopes' theta| = |R theta + q| up to a constant.
    return np.linalg.solve(triangle[:dim, :dim], rng.standard_normal(dim) - triangle[:dim, dim])


ENTRYWISE = Family(
    "Normal",
    ("mean", "sd"),
    drawn_by(kernels.draw_entrywise),
    lambda theta, mean, sd: float(-0.5 * (((theta - mean) / sd) ** 2).sum()),
    positive=False,
    kernel=kernels.draw_entrywise,
)
JOINT = Family(
    "MvNormal",
    ("slopes and residuals",),
    draw_joint,
    lambda theta, rows: float(-0.5 * ((rows[-1] + theta.ravel() @ rows[:-1]) ** 2).sum()),
    positive=False,
    kernel=kernels.draw_joint,
)
