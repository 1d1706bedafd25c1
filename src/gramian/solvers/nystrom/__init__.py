"""Gradient methods on the Nystrom problem: the baselines of FALKON's figure 1."""
