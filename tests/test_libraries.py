"""Releases that privacy libraries make themselves, read and sampled.

OpenDP is in the tests' own environment: `statistical/test_opendp.py`. Of Tumult Analytics a release
was recorded: `releases/test_tumult.py`.
"""

import pytest

from tests.libraries.environments import run_tests


@pytest.mark.long
@pytest.mark.parametrize(
    "library",
    ["cell-key-perturbation", "diffprivlib", "pipeline-dp", "private-pgm", "smartnoise"],
)
def test_releases_of_a_library_are_read(library):
    done = run_tests(library)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped" not in done.stdout
