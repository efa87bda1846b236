"""How a model depends on rows of which only the first n are present."""
