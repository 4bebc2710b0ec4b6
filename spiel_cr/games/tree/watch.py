"""Looking after a walk: how far it is, and its end where memory does not suffice."""

import time
from types import TracebackType

import pyspiel
from tqdm import tqdm

from spiel_cr.common import memory
from spiel_cr.common.announcing import is_wanted
from spiel_cr.games.opening import estimate

# Seconds between two looks at memory and clock, and before progress is shown.
_EVERY, _SILENT = 0.05, 1.0
# What is yet to come when a walk is at its end, for each history: numbering.
_BYTES_AFTER = 75


class Watch:
    """Is called while a game is walked, with the number of histories so far.

    The number of histories that a limit has room for is a guess: strings of infosets,
    or states that wait for their turn, can be much larger than usual. So what the
    process holds more than before is looked at, too.
    """

    def __init__(
        self, game: pyspiel.Game, limit: memory.Limit, *, progress: bool = False
    ) -> None:
        """Refuses what is clearly too large.

        Args:
          game: a sequential game.
          limit: of memory; see `memory.parse_limit`.
          progress: show the histories so far on stderr, after a second; commands
            always do.

        Raises:
          GameTooLargeError: the game is clearly too large.
          ValueError: the limit is no size.
        """
        self._size = memory.parse_limit(limit)
        self.fits = estimate.check_limit(game, limit, size=self._size)
        self._game = game
        self._limit = limit
        self._held = memory.held_bytes()
        self._next = time.perf_counter() + _EVERY
        self._bar = tqdm(
            desc=f"walking {game.get_type().short_name}",
            unit=" histories",
            unit_scale=True,
            delay=_SILENT,
            disable=not is_wanted(progress),
        )

    def __enter__(self) -> "Watch":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bar.close()

    def __call__(self, histories: int) -> None:
        """Shows how far the walk is.

        Args:
          histories: visited so far.

        Raises:
          GameTooLargeError: the walk takes more memory than the limit.
        """
        now = time.perf_counter()
        if now < self._next:
            return
        self._next = now + _EVERY
        self._bar.update(histories - self._bar.n)
        grown = memory.held_bytes() - self._held
        need = memory.IMPORTED_BYTES + grown + histories * _BYTES_AFTER
        if need > self._size:
            raise memory.too_large(
                self._game,
                f"has more than {histories:,} histories, which take "
                f"{memory.describe_bytes(need)} to compile",
                self._limit,
                self._size,
            )

    def too_many(self) -> Exception:
        """The error to raise where there are more histories than `fits`."""
        why = f"has more than {self.fits:,} histories"
        return memory.too_large(self._game, why, self._limit, self._size)
