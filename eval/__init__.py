"""Evaluation for users: matches, comparisons, reports, and the command line."""
