"""Reports of results: summaries, Markdown, HTML and plots."""
