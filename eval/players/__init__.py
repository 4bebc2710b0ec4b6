"""Measuring players: matches, tournaments, NashConv of what a bot plays."""
