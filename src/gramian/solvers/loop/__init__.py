"""The loop of iterative solvers: states, stopping, storage and verification."""
