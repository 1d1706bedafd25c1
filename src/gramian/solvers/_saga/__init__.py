"""Parts of SketchySAGA: the penalty, the sketch with its step, and the table of residuals."""
