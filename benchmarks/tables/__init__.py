"""Tables: what becomes of columns that hold no numbers."""
