"""Arithmetic on arrays.  Imports numpy, scipy and nothing of kvbench."""
