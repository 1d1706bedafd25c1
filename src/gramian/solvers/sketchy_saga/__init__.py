"""SketchySAGA: variance-reduced stochastic gradients with a sketched preconditioner."""
