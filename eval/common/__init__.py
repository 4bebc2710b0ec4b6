"""eval/common."""
