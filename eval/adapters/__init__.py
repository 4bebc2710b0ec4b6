"""Solver adapters: one interface to our algorithms and to those OpenSpiel bundles."""
