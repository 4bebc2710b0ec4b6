"""Benchmarks of signal games."""
