"""What EigenPro 1, 2 and 3 are made of: settings and states, projections, temporary centers."""
