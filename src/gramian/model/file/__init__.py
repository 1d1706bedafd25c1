"""Files of models: their format, reading, and checks."""
