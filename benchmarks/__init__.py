"""Benchmarks: one script per question, ``python -m benchmarks NAME``; results in ``results/``."""
