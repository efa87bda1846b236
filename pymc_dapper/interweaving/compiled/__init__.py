"""From parameters in terms of noise to compiled moves."""
