"""A game is walked once and becomes a `CompiledGame` (see `tree`)."""

import time
from types import TracebackType
from typing import TypeAlias

import pyspiel
from tqdm import tqdm

from spiel_cr.common import memory
from spiel_cr.common.announcing import is_wanted
from spiel_cr.common.atomic import Path
from spiel_cr.common.checks import check_whole
from spiel_cr.common.errors import TooManyHistoriesError
from spiel_cr.games.opening import estimate
from spiel_cr.games.opening.opened import Openable, open_game
from spiel_cr.games.opening.vectorised import VectorisedGame
from spiel_cr.games.tree import cache as compile_cache
from spiel_cr.games.tree import numbering, second_look, state_walk, vectorised_walk
from spiel_cr.games.tree.infostate_strings import Strings
from spiel_cr.games.tree.replay import lazy_strings
from spiel_cr.games.tree.tree import MAX_HISTORIES, CompiledGame, assemble, too_many

Game: TypeAlias = str | pyspiel.Game | CompiledGame

# Seconds between two looks at memory and clock, and before progress is shown.
_EVERY, _SILENT = 0.05, 1.0
# What is yet to come when a walk is at its end, for each history: numbering.
_BYTES_AFTER = 75


def compile_game(
    game: Openable,
    *,
    observations: bool = False,
    max_histories: int | None = None,
    vectorised: bool = True,
    cache: Path | None = None,
    memory_limit: memory.Limit = None,
    progress: bool = False,
) -> CompiledGame:
    """Walks a game once and lays it out as arrays.

    Args:
      game: OpenSpiel game string, game, or one that is open: two players, zero-sum,
        perfect recall. Simultaneous moves are converted to turns.
      observations: also record the observations of the player who does not act, which
        makes the subgames of continual resolving smaller. Costs one more string per
        decision.
      max_histories: refuse games with more histories than this.
      vectorised: play by the game's own rules on arrays, if it has them (see
        `vectorised.py`); else, and with False, walk over OpenSpiel's states. The result
        is the same.
      cache: a folder in which compiled games are kept, so that the same game need not
        be compiled again (see `cache.py`).
      memory_limit: refuse games that would take more: bytes, or a size like "3GB";
        "none" or `math.inf`: no limit; None: 70 % of what the process may have, at
        least 1 GB (see `memory.default_limit`).
      progress: show the histories so far on stderr where the walk is long.

    Returns:
      The compiled game.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      GameTooLargeError: the game would take more memory than the limit.
      ValueError: the game is not two-player zero-sum.
      ImperfectRecallError: a player forgets something.
      InvalidGameError: the game breaks what it promises: odds or payoffs are none,
        returns do not sum to zero, an infoset has different actions, or a second look
        sees another game. Names the history and what is wrong there.
      TooManyHistoriesError: there are more than `max_histories` histories.
    """
    limit = MAX_HISTORIES
    if max_histories is not None:
        limit = check_whole(max_histories, "max_histories", 1)
    opened = open_game(game)
    game, rules = opened.game, opened.rules if vectorised else None

    def compile_now() -> CompiledGame:
        with _Watch(game, memory_limit, progress=progress) as watch:
            most = min(limit, watch.fits)
            try:
                return _compile(game, rules, observations, most, watch)
            except TooManyHistoriesError as error:
                if most < limit:
                    raise watch.too_many() from error
                raise

    if cache is None:
        return compile_now()
    size = memory.parse_limit(memory_limit)
    fits = memory.room_for(size)
    tree = compile_cache.through(game, rules, cache, compile_now, observations)
    # What was read was not estimated before.
    count = len(tree.histories)
    if count > fits and fits < limit:
        raise memory.too_large(game, f"has {count:,} histories", memory_limit, size)
    if count > limit:
        raise too_many(game, limit)
    return tree


def _compile(
    game: pyspiel.Game,
    rules: VectorisedGame | None,
    observations: bool,
    limit: int,
    watch: "_Watch",
) -> CompiledGame:
    """Compiles a checked game, by its rules on arrays or by a walk over its states."""
    strings: tuple[list[str], ...] = ()
    if rules is None:
        walked, strings = state_walk.walk(
            game, observations=observations, max_histories=limit, watch=watch
        )
    else:
        walked = vectorised_walk.walk(
            *(game, rules),
            observations=observations,
            max_histories=limit,
            watch=watch,
        )
    second_look.check(game, walked, strings or None)
    histories, infosets, labels = numbering.number(walked, game)
    del walked
    keys = [
        lazy_strings(game, rules, histories, own.history, p)
        if rules is not None
        else Strings.packed([strings[p][label] for label in labels[p]])
        for p, own in enumerate(infosets)
    ]
    del strings
    return assemble(game, histories, infosets, keys)


def as_compiled(
    game: Game,
    *,
    observations: bool = False,
    vectorised: bool = True,
    memory_limit: memory.Limit = None,
    cache: Path | None = None,
    progress: bool = False,
) -> CompiledGame:
    """Compiles unless that is done already.

    Args:
      game: OpenSpiel game string, game, or compiled game, which is returned as it is.
      observations: as for `compile_game`, and so are all others.

    Raises:
      GameTooLargeError: the game would take more memory than the limit.
      ValueError: as `compile_game`.
    """
    if isinstance(game, CompiledGame):
        memory.parse_limit(memory_limit)
        return game
    return compile_game(
        game,
        observations=observations,
        vectorised=vectorised,
        memory_limit=memory_limit,
        cache=cache,
        progress=progress,
    )


class _Watch:
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

    def __enter__(self) -> "_Watch":
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
