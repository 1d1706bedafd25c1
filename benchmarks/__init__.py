"""Benchmarks: one file per question, in folders by what they measure; results in ``results/``."""
