"""Losses besides the square: minima reached, seconds, memory, and what they are worth."""
