"""Checks of arguments, and the texts of errors and numbers."""
