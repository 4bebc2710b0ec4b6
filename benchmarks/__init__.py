"""Benchmarks: measurements as JSON lines, and tables that are generated from them."""
