"""Errors that callers tell apart by type."""


class GameTooLargeError(ValueError):
    """The game has more histories than a memory limit has room for."""


class ImperfectRecallError(ValueError):
    """A player's information state can be reached after different own moves."""


class HiddenTurnsError(ValueError):
    """A player cannot count the turns of the other one, so the game has no layers."""


class TooManyHistoriesError(ValueError):
    """The game has more histories than were allowed."""
