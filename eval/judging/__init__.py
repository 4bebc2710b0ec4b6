"""eval/judging."""
