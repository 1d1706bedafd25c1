"""Steps of a search with all rows as centers."""
