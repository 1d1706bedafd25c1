"""The papers, item by item: the paper's value next to ours, with a verdict."""
