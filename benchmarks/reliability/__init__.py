"""Faults, plans, bounded memory and installation."""
