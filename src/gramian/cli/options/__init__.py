"""Options of commands: how they are declared, read and turned into settings."""
