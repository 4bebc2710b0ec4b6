"""Browser table: series of matches against a bot, on a local web page."""
