"""Arithmetic on arrays.  Imports numpy and nothing of kvbench.

What scipy can do as well is tested against it.  It is no dependency at run time: importing its
statistics takes longer than a gate over hundreds of numbers.
"""
