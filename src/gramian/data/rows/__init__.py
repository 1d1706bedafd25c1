"""Rows: blocks of numbers, in any order and any number, from arrays, frames and files."""
