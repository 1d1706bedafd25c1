"""Encodings of single columns: numbers, categories, dates and others."""
