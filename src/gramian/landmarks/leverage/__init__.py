"""Selection of landmarks by leverage scores."""
