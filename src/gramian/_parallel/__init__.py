"""Parallel work in threads and processes."""
