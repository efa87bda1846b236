"""A log-density as terms of few entries of an array, and linear functions of these entries."""
