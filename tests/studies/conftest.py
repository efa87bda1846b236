"""What tests of studies don't look at."""

import pytensor
import pytest


@pytest.fixture(autouse=True, scope="module")
def pymcs_own_in_python():
    """What PyMC compiles for itself, for each chain anew, is evaluated in Python.

    Our steps are compiled, but in other processes all is as users have it.
    """
    with pytensor.config.change_flags(mode="FAST_COMPILE"):
        yield
