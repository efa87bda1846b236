"""Step methods: thin adapters from PyMC's step protocol to a compiled kernel."""
