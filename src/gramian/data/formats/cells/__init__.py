"""Formats of cells with values of any type: sheets, databases, lines of JSON."""
