"""Parameters of fits: types, constraints, help and names, declared once."""
