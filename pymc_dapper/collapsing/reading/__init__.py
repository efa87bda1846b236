"""Whether counts can be summed out of a model's log-density one by one."""
