"""eval/players."""
