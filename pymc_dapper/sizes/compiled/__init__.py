"""What is compiled of a model."""
