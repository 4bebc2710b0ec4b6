"""A table to play at: series of matches against a bot, as a page on this machine."""
