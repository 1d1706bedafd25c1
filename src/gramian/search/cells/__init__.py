"""Steps of a search by cells of all rows."""
