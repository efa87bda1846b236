"""A log-density as terms, each of few entries of an array, and what is linear in these."""
