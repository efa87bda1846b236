"""One toolkit for all readers of a model's graph."""
