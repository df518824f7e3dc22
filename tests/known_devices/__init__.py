"""Devices whose latency is known: does kvbench report what they did?"""
