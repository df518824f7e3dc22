"""Benchmarks that print ratios.  They assert nothing: a busy machine must not fail a build."""
