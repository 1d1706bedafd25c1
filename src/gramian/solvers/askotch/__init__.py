"""ASkotch and Skotch: accelerated sketch-and-project on all rows."""
