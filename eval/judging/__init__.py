"""Exact judges: OpenSpiel's, and ours on games that are too large for these."""
