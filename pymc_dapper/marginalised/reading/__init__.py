"""Whether a model's counts can be marginalised, one by one."""
