"""Methods: from prepared data to a problem, and from its solution to a model."""
