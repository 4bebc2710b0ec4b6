"""OpenSpiel's exact judges."""
