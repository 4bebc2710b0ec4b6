"""eval/reporting."""
