"""Leaves of depth-limited lookahead: what they cost in NashConv."""
