"""Types of the columns of a text table, and conversion of texts to values."""
