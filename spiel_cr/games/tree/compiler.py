"""A game is walked once and becomes a `CompiledGame` (see `tree`)."""

from typing import TypeAlias

import pyspiel

from spiel_cr.common.atomic import Path
from spiel_cr.common.checks import check_whole
from spiel_cr.common.errors import TooManyHistoriesError
from spiel_cr.common.memory import Limit, parse_limit, room_for, too_large
from spiel_cr.games.opening.opened import Openable, open_game
from spiel_cr.games.opening.vectorised import VectorisedGame
from spiel_cr.games.tree import cache as compile_cache
from spiel_cr.games.tree import numbering, second_look, state_walk, vectorised_walk
from spiel_cr.games.tree.infostate_strings import Strings
from spiel_cr.games.tree.replay import lazy_strings
from spiel_cr.games.tree.tree import MAX_HISTORIES, CompiledGame, assemble, too_many
from spiel_cr.games.tree.watch import Watch

Game: TypeAlias = str | pyspiel.Game | CompiledGame


def compile_game(
    game: Openable,
    *,
    observations: bool = False,
    max_histories: int | None = None,
    vectorised: bool = True,
    cache: Path | None = None,
    memory_limit: Limit = None,
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
        with Watch(game, memory_limit, progress=progress) as watch:
            most = min(limit, watch.fits)
            try:
                return _compile(game, rules, observations, most, watch)
            except TooManyHistoriesError as error:
                if most < limit:
                    raise watch.too_many() from error
                raise

    if cache is None:
        return compile_now()
    size = parse_limit(memory_limit)
    fits = room_for(size)
    tree = compile_cache.through(game, rules, cache, compile_now, observations)
    # What was read was not estimated before.
    count = len(tree.histories)
    if count > fits and fits < limit:
        raise too_large(game, f"has {count:,} histories", memory_limit, size)
    if count > limit:
        raise too_many(game, limit)
    return tree


def _compile(
    game: pyspiel.Game,
    rules: VectorisedGame | None,
    observations: bool,
    limit: int,
    watch: Watch,
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
    memory_limit: Limit = None,
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
        parse_limit(memory_limit)
        return game
    return compile_game(
        game,
        observations=observations,
        vectorised=vectorised,
        memory_limit=memory_limit,
        cache=cache,
        progress=progress,
    )
