"""eval/comparison."""
