"""Is what was written still there?  What a run must have left on its target, and what is there."""
