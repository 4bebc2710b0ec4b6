"""A game is walked once and becomes a `CompiledGame` (see `tree`)."""

from typing import TypeAlias

import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.checks import check_whole
from spiel_cr.common.errors import GameTooLargeError, TooManyHistoriesError
from spiel_cr.common.storage import Path
from spiel_cr.compilation import cache as compile_cache
from spiel_cr.compilation import numbering, state_walk, vectorised_walk
from spiel_cr.compilation.infostate_strings import Strings
from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.replay import lazy_strings
from spiel_cr.compilation.tree import MAX_HISTORIES, CompiledGame, assemble, too_many
from spiel_cr.compilation.vectorised import VectorisedGame, of_game

Game: TypeAlias = str | pyspiel.Game | CompiledGame


def compile_game(
    game: str | pyspiel.Game,
    *,
    observations: bool = False,
    max_histories: int | None = None,
    vectorised: bool = True,
    cache: Path | None = None,
) -> CompiledGame:
    """Walks a game once and lays it out as arrays.

    Args:
      game: OpenSpiel game string or game: two players, zero-sum, perfect recall.
        Simultaneous moves are converted to turns.
      observations: also record the observations of the player who does not act, which
        makes the subgames of continual resolving smaller. Costs one more string per
        decision.
      max_histories: refuse games with more histories than this.
      vectorised: play by the game's own rules on arrays, if it has them (see
        `vectorised.py`); else, and with False, walk over OpenSpiel's states. The result
        is the same.
      cache: a folder in which compiled games are kept, so that the same game need not
        be compiled again (see `cache.py`).

    Returns:
      The compiled game.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game is not two-player zero-sum, or a player forgets something
        (imperfect recall).
      TooManyHistoriesError: there are more than `max_histories` histories.
    """
    limit = MAX_HISTORIES
    if max_histories is not None:
        limit = check_whole(max_histories, "max_histories", 1)
    game = load_game(game)
    rules = of_game(game) if vectorised else None

    def compile_now() -> CompiledGame:
        return _compile(game, rules, observations, limit)

    if cache is None:
        return compile_now()
    tree = compile_cache.through(game, rules, cache, compile_now, observations)
    if len(tree.histories) > limit:
        raise too_many(game, limit)
    return tree


def _compile(
    game: pyspiel.Game, rules: VectorisedGame | None, observations: bool, limit: int
) -> CompiledGame:
    """Compiles a checked game, by its rules on arrays or by a walk over its states."""
    strings: tuple[list[str], ...] = ()
    if rules is None:
        walked, strings = state_walk.walk(
            game, observations=observations, max_histories=limit
        )
    else:
        walked = vectorised_walk.walk(
            game, rules, observations=observations, max_histories=limit
        )
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
    memory_limit: int | str | None = None,
    cache: Path | None = None,
) -> CompiledGame:
    """Compiles unless that is done already; refuses games over the memory limit.

    Args:
      game: OpenSpiel game string, game, or compiled game, which is returned as it is.
      observations: as for `compile_game`.
      memory_limit: bytes, or a text such as "3GB"; None: as much as there is.
      cache: as for `compile_game`.

    Raises:
      GameTooLargeError: the game would take more memory than the limit.
    """
    if isinstance(game, CompiledGame):
        return game
    game = load_game(game)
    fits = None
    if memory_limit is not None:
        fits = memory.check_limit(game, memory.parse_size(memory_limit))
        fits = min(fits, MAX_HISTORIES)
    try:
        return compile_game(
            game, observations=observations, max_histories=fits, cache=cache
        )
    except TooManyHistoriesError as error:
        if fits is None or fits == MAX_HISTORIES:
            raise
        raise GameTooLargeError(
            f"{game} has more than {fits:,} histories, which is what "
            f"memory_limit={memory_limit} has room for; raise the limit or choose "
            f"smaller game parameters"
        ) from error
