"""EigenPro 1, 2 and 3: preconditioned stochastic gradients."""
