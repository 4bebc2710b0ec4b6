"""eval/inspection."""
