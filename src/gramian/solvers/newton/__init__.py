"""Newton's method for losses other than the squared error."""
