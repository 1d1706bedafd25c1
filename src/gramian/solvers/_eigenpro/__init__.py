"""Parts of EigenPro 1, 2 and 3: settings and states, projections, temporary centers."""
