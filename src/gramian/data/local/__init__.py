"""Rows and tables that this process reads itself, and tables that it writes."""
