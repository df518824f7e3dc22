"""Data file -> Workload: what I/O is done, typed, checked and documented."""
