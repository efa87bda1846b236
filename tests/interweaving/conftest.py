"""What tests of record maps may ask for."""

import pytest
from pymc.distributions.continuous import WaldRV

from pymc_dapper.interweaving.reading.maps import record_map


@pytest.fixture
def register_wald():
    # singledispatch has no way to take a rule back: put the general one in its place.
    record_map.register(WaldRV)(record_map.dispatch(object))
    yield lambda rule: record_map.register(WaldRV)(rule)
    record_map.register(WaldRV)(record_map.dispatch(object))
