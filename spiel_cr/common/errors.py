"""Errors that callers tell apart by type."""

from spiel_cr.common.messages import one_line


class GameTooLargeError(ValueError):
    """A game, or an algorithm on it, takes more than a memory limit has room for."""


class ImperfectRecallError(ValueError):
    """A player's information state can be reached after different own moves."""


class UncountableTurnsError(ValueError):
    """A player cannot count the turns of the other one, so the game has no layers."""


class TooManyHistoriesError(ValueError):
    """The game has more histories than were allowed."""


def too_many_histories(game: object, limit: int) -> TooManyHistoriesError:
    """The error to raise where a game turns out to have more histories than allowed."""
    return TooManyHistoriesError(
        f"{one_line(game)} has more than max_histories={limit} histories; raise the "
        f"limit or "
        f"choose smaller game parameters"
    )


class InvalidGameError(ValueError):
    """A game breaks what it promises, such as zero sum; the message names a history."""


class InvalidPolicyError(ValueError):
    """A policy's answer is not a strategy; the message names class and history."""


class MoreKnowledgeError(ValueError):
    """A policy depends on more than its player's infoset in a form of the game."""


class OtherGameError(ValueError):
    """A policy or result belongs to another game; the message names both games."""


class CorruptFileError(ValueError):
    """A file does not hold what was written to it; the message names the file."""


class FileInUseError(ValueError):
    """Another process writes to this file or folder; the message names it."""


class SolverFailedError(RuntimeError):
    """A numerical solver ended without a solution; the message says why."""


class WorkerFailedError(RuntimeError):
    """A worker process ended, or met a mistake in the code; the message has it."""


class UnsavedWarning(UserWarning):
    """Results are there, but a file could not be written; `error` names it."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"{error}; it was not written")
        self.error = error
