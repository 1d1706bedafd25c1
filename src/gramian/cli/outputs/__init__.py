"""Outputs of commands: messages, progress, reports and files."""
