"""Methods of a fit: make a problem of prepared data, and a model of its solution."""
