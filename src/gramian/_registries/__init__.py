"""Registries of classes by name, with plugins and synonyms."""
