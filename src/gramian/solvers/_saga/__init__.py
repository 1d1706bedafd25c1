"""What SketchySAGA is made of: the penalty, the sketch with its step, and the table."""
