"""Tools on graphs, for all readers of a model."""
