"""Parts of EigenPro 1, 2 and 3: settings, states, projections and temporary centers."""
