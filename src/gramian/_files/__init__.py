"""Files: atomic writing, and tensors with a digest."""
