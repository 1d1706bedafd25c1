"""Inputs of commands: tables of training, tables with the truth, and clusters."""
