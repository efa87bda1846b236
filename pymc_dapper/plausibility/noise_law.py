"""The law of the noise that was added to a statistic, from its log-density."""

from collections.abc import Callable
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

SMALLEST_WIDTH = 1e-280
"""Noise narrower than this is an equation."""

SEPARATE_ENTRIES = 50
"""A log-density that isn't a vector is examined entry by entry, up to this number of entries."""


class NoiseLaw:
    """Noise on the entries of a release: standard deviations, and the fall of its density.

    For ``log_density`` see :attr:`ModelRelease.noise`; ``shape`` is the shape of the release.
    """

    def __init__(self, log_density: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]):
        self.log_density = log_density
        self.shape = shape
        self.size = prod(shape)
        self._top = log_density(np.zeros(shape))
        self._entrywise = self._top.size == self.size
        self.is_whole = False
        if self._is_known:
            below, at, above = (self.drop(np.full(self.size, x)) for x in (0.9, 1.0, 1.1))
            skipped = (below == np.inf) & (at < np.inf)
            cut_off = (below == 0) & (at > 0) & (at == above) & (at < np.inf)
            self.is_whole = bool(np.any(skipped | cut_off))

    @property
    def _is_known(self) -> bool:
        can_be_told = self._entrywise or self.size <= SEPARATE_ENTRIES
        return can_be_told and bool(np.all(np.isfinite(self._top)))

    @property
    def is_normal(self) -> bool:
        """Whether the log-density falls with the square of the distance."""
        if self.deviations is None:
            return False
        one, two = self.drop(self.deviations), self.drop(2 * self.deviations)
        return bool(np.allclose(two, 4 * one, rtol=1e-9))

    def drop(self, distance: np.ndarray) -> np.ndarray:
        """Return how far each entry's log-density lies below its value at zero noise."""
        if self.is_whole:
            distance = np.rint(distance)
        if self._entrywise:
            at = self.log_density(np.reshape(distance, self.shape))
            return np.nan_to_num((self._top - at).ravel(), nan=np.inf, posinf=np.inf)
        alone = (x.reshape(self.shape) for x in np.diag(distance))
        drops = np.array([np.sum(self._top) - np.sum(self.log_density(x)) for x in alone])
        return np.nan_to_num(drops, nan=np.inf, posinf=np.inf)

    @cached_property
    def deviations(self) -> Any:
        """The noise's standard deviations, by quadrature.

        None if the noise has none: its density isn't highest at zero, or the statistic is known
        exactly.
        """
        if not self._is_known:
            return None
        width = np.ones(self.size)
        for _ in range(1000):
            narrow, wide = self.drop(width) < 0.5, self.drop(width / 2) >= 0.5
            if not np.any(narrow | wide):
                break
            width *= np.where(narrow, 2.0, np.where(wide, 0.5, 1.0))
        # The grid becomes sparser with distance, up to a hundred widths.
        steps = 0.1 * np.sinh(np.linspace(-7.6, 7.6, 161))
        drops = np.array([self.drop(width * step) for step in steps])
        peaked = np.min(drops) > -1e-6 and np.all(self.drop(width) >= 0.5)
        if not peaked or np.any(width < SMALLEST_WIDTH):
            return None
        weights = np.exp(-drops)
        x = np.outer(steps, width)
        x = np.rint(x) if self.is_whole else x
        squares = np.trapezoid(x**2 * weights, x, axis=0) / np.trapezoid(weights, x, axis=0)
        return np.sqrt(squares) if np.all(squares > 0) else None
