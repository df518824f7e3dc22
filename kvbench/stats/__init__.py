"""Arithmetic on arrays.  Imports numpy and nothing of kvbench."""
