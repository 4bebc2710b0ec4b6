"""Errors that callers tell apart by type."""


class GameTooLargeError(ValueError):
    """The game has more histories than a memory limit has room for."""
