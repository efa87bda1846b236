"""Whether counts can be marginalised of a model's log-density one by one."""
