"""Models of many centers: EigenPro and SketchySAGA."""
