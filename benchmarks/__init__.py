"""Benchmarks: facts as JSON lines first, tables made from them."""
