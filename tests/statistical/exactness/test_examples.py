"""The sampler agrees with other answers to the paper's examples, and a faulty one doesn't.

Example 2 has a test of its own: `tests/statistical/test_admissions.py`.
"""

import numpy as np
import pytest

from tests.statistical.exactness.reference import REFERENCES, compare
from tests.statistical.twins import with_propose

pytestmark = pytest.mark.long


@pytest.mark.parametrize("name", ["example 1", "example 3"])
def test_the_sampler_agrees(name):
    reference = REFERENCES[name]
    verdict = compare(reference, reference.sampler(), np.random.default_rng(9), long=False)
    assert not verdict.caught, verdict


def test_outcomes_proposed_for_the_next_record_are_told_apart():
    reference = REFERENCES["example 3"]
    exact = reference.sampler()
    y = exact.dapper._record_names.index("y")

    def shift(propose, rng, *given):
        return [
            np.roll(proposal, 1) if k == y else proposal
            for k, proposal in enumerate(propose(rng, *given))
        ]

    twin = exact.with_steps([with_propose(exact.dapper, shift), *exact.steps[1:]])
    verdict = compare(reference, twin, np.random.default_rng(9), long=False)
    assert verdict.caught, verdict
