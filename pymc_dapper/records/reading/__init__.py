"""How a model sees its records: what proposes them, and the factors that they enter."""
