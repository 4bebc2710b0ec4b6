"""Tournaments: round robins of matches or sessions, and styles of play."""
