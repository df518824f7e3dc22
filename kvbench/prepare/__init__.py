"""Bring a device into a known state: purge it, fill it, and run rounds until it is steady.

The only room beside ``fio`` that opens a target for writing.  Its callers have passed the guard and
hold the target; every step asks again whether the target still is the same thing.
"""
