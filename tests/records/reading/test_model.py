"""Models in the forms that people write them are read, and what was read is compared with them."""

import pytest

from pymc_dapper.reading import FullFactor
from tests.records.forms import FORMS, checked


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_read(name):
    *_, reading, _ = checked(name)
    assert any(isinstance(f, FullFactor) for f in reading.factors) == name.startswith("full")
    assert not reading.proposes_conditionally
