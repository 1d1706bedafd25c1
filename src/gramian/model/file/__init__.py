"""The file of a model: its format, how it is read, and what must hold before it is believed."""
