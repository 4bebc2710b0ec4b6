"""Errors that callers distinguish by their type."""

from spiel_cr.common.messages import one_line


class GameTooLargeError(ValueError):
    """A game, or an algorithm on it, needs more memory than the memory limit allows."""


class ImperfectRecallError(ValueError):
    """A player can reach an information state by different sequences of its actions."""


class UncountableTurnsError(ValueError):
    """A player cannot count the opponent's turns, so the game has no layers."""


class TooManyHistoriesError(ValueError):
    """A game has more histories than the caller allowed."""


def too_many_histories(game: object, limit: int) -> TooManyHistoriesError:
    """Return the error for a game with more histories than the limit."""
    return TooManyHistoriesError(
        f"{one_line(game)} has more than max_histories={limit} histories; raise the "
        f"limit or "
        f"choose smaller game parameters"
    )


class InvalidGameError(ValueError):
    """A game violates its declared properties, such as zero sum.

    The message names a history.
    """


class InvalidPolicyError(ValueError):
    """A policy returned values that are not a strategy.

    The message names the policy's class and a history.
    """


class MoreKnowledgeError(ValueError):
    """A policy depends on information that its player's infoset does not contain."""


class OtherGameError(ValueError):
    """A policy or result belongs to another game; the message names both games."""


class CorruptFileError(ValueError):
    """The content of a file is not what spiel_cr wrote; the message names the file."""


class FileInUseError(ValueError):
    """Another process writes to this file or folder; the message names the path."""


class SolverFailedError(RuntimeError):
    """A numerical solver ended without a solution; the message states the reason."""


class WorkerFailedError(RuntimeError):
    """A worker process ended or raised an unexpected error; the message contains it."""


class UnsavedWarning(UserWarning):
    """A file of a computed result could not be written; `error` names the file."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"{error}; it was not written")
        self.error = error
