"""Raw records -> numbers, each with its unit, its count and the reasons to doubt it.

The one place where fio's units become kvbench's (seconds, bytes, bytes per second).
"""
