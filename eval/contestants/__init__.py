"""eval/contestants."""
