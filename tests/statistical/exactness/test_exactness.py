"""Each form's sampler passes all tests of exactness, and each fault is caught by one.

`python -m tests.exactness_table` runs all tests of all samplers, exact and faulty, for longer, and
writes what they find into docs/evidence/exactness.md.
"""

from itertools import product
from pathlib import Path

import pytest

from tests.statistical.exactness.cases import CASES
from tests.statistical.exactness.evidence import EXACT, SHORT, TESTS
from tests.statistical.exactness.faults import FAULTS
from tests.statistical.exactness.reference import REFERENCES

CAUGHT = {
    "stale cached sum": ("matrix", "functions of all sums"),
    "acceptance ratio upside down": ("calibration", "separable, decided on"),
    "one record skipped": ("matrix", "several variables"),
    "proposal from the wrong theta": ("Geweke", "separable, drawn exactly"),
    "t_i at the old theta": ("matrix", "non-centred"),
    "missing Jacobian, records": ("Geweke", "transformed"),
    "missing Jacobian, NUTS": ("Geweke", "compound with NUTS"),
    "theta given the old records": ("Geweke", "compound with NUTS"),
}
"""A test, and a form, that catches a fault soon. docs/evidence/exactness.md has them all."""

IN_EVERY_RUN = "acceptance ratio upside down"
"""In the form whose exact sampler is compiled in every run. One folder above, stale sums are told
from fresh ones in `test_transition_matrix.py`, and wrong proposals from exact ones in
`test_separable.py` and `test_constrained_records.py`. A density of NUTS without its Jacobian is
told from the model's in `tests/steps/test_conditional_nuts.py`."""


READY_MADE = (
    "graphical microdata",
    "microdata of latent classes",
    "microdata by regressions",
)

ONCE_MORE = {"mixed", "non-centred", "several variables", "transformed", *READY_MADE}
"""Forms that other tests of every run cover, uncompiled or in other models."""
ONCE_MORE |= {"full evaluation", "sums, entry by entry", "functions of all sums"}
"""Of which there are matrices, as compiled, and those of twins in `test_full_evaluation.py` and
`test_transition_matrix.py`, one folder above."""
ONCE_MORE |= {"compound with InterweaveStep", "separable, drawn exactly", "compound with NUTS"}
"""With twins: `test_interweave.py` and `test_separable.py`, one folder above; and the gradient of
NUTS in `tests/steps/test_conditional_nuts.py`."""


@pytest.mark.parametrize(
    ("test", "case"),
    [
        pytest.param(test, case, marks=[pytest.mark.long] if case in ONCE_MORE else [])
        for test, case in product(TESTS, CASES)
    ],
)
def test_an_exact_sampler_passes(test, case):
    verdict = TESTS[test](case, EXACT, SHORT)
    assert verdict is None or not verdict.caught, verdict


@pytest.mark.parametrize(
    "fault",
    [pytest.param(x, marks=[] if x == IN_EVERY_RUN else pytest.mark.long) for x in FAULTS],
)
def test_each_fault_is_caught(fault):
    test, case = CAUGHT[fault]
    verdict = TESTS[test](case, fault, SHORT)
    assert verdict.caught, verdict


@pytest.mark.long
@pytest.mark.parametrize("case", READY_MADE)
@pytest.mark.parametrize("fault", ["acceptance ratio upside down", "one record skipped"])
def test_ready_made_models_show_faults(fault, case):
    verdict = TESTS["Geweke"](case, fault, SHORT)
    assert verdict.caught, verdict


def test_the_page_is_of_these_forms_and_faults():
    folder = Path(__file__).parents[3] / "docs" / "evidence"
    page = (folder / "exactness.md").read_text(encoding="utf-8")
    titles = [line[4:].lower() for line in page.splitlines() if line.startswith("### ")]
    assert titles == [name.lower() for name in (*CASES, *REFERENCES)]
    assert all(f"| {fault} |" in page for fault in FAULTS)
