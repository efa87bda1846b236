"""Reading a model with tables of counts."""
