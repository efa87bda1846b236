"""All tests of all samplers, exact and faulty: what `test_exactness.py` and the table share."""

import zlib
from dataclasses import dataclass
from functools import cache

import numpy as np

from tests.statistical.exactness import verdicts
from tests.statistical.exactness.cases import CASES
from tests.statistical.exactness.faults import FAULTS
from tests.statistical.exactness.sampler import build

EXACT = "exact"


@dataclass(frozen=True)
class Effort:
    """How long the tests run.

    Attributes
    ----------
    iterations : int
        Of Geweke's test.
    replicates : int
        Of simulation-based calibration.
    """

    iterations: int
    replicates: int


SHORT, LONG = Effort(5_000, 64), Effort(60_000, 320)


@cache
def sampler(case):
    return build(CASES[case])


@cache
def thinning(case):
    return verdicts.thinning(sampler(case), np.random.default_rng(4))


def make(case, fault):
    """A sampler with a fault; None if this sampler can't have the fault."""
    return sampler(case) if fault == EXACT else FAULTS[fault](sampler(case))


def faults_of(case):
    return [fault for fault in FAULTS if make(case, fault) is not None]


def _matrix(case, fault, effort):
    if CASES[case].finite is None:
        return None
    return verdicts.matrix(make(case, fault))


def _geweke(case, fault, effort):
    return verdicts.geweke(make(case, fault), _rng(case, fault), effort.iterations)


def _calibration(case, fault, effort):
    return verdicts.calibration(
        make(case, fault), _rng(case, fault), effort.replicates, thinning(case)
    )


def _rng(case, fault):
    return np.random.default_rng(zlib.crc32(f"{case}, {fault}".encode()))


TESTS = {"matrix": _matrix, "Geweke": _geweke, "calibration": _calibration}
"""Name of a test to a function (case, fault, effort); None where it doesn't apply."""
