"""Entrances of data: rows and tables from arrays, frames, files and addresses."""
