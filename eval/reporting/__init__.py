"""From results to pages: summaries, Markdown, HTML, plots."""
