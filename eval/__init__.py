"""What people look at: judges, matches, comparisons, reports, and the command line."""
