"""From a model's reading to compiled functions."""
