"""Names of sampler statistics that are read again after sampling."""

ACCEPT_STAT = "dapper_accept"
"""Share of the records whose proposal was accepted in a sweep."""

RECORD_STAT = "dapper_accept_by_record"
"""Each record's acceptance rate: None but at a chain's last draw."""

EXCHANGE_STAT = "dapper_exchange_accept"
"""Share of the exchanges between two records that were made in a sweep, where there are any."""
