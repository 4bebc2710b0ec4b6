"""eval/cli."""
