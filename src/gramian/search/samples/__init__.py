"""Steps of a search on samples of the rows, with few landmarks."""
