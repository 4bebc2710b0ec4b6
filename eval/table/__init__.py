"""Browser table: series of matches against a bot, on a page of this machine."""
