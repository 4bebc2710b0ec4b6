"""Second stage: a game is walked once and becomes a `CompiledGame`, numpy arrays.

What these arrays are is said in `compiled.py`.
"""

import os
from typing import Any, TypeAlias

import pyspiel

from spiel_cr.common import memory, storage
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.compilation import cache as compile_cache
from spiel_cr.compilation import compiler as tree_lib
from spiel_cr.compilation import (
    infostate_strings,
    loading,
    numbering,
    state_walk,
    vectorised_walk,
)
from spiel_cr.compilation import tree as compiled
from spiel_cr.compilation import vectorised as expansion
from spiel_cr.compilation.numbering import TooManyHistoriesError
from spiel_cr.compilation.tree import CompiledGame


def compile_game(
    game: str | pyspiel.Game,
    *,
    observations: bool = False,
    max_histories: int | None = None,
    vectorised: bool = True,
    cache: str | os.PathLike[str] | None = None,
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
        `expansion.py`); else, and with False, walk over OpenSpiel's states. The result
        is the same.
      cache: a folder in which compiled games are kept, so that the same game need not
        be compiled again (see `compile_cache.py`).

    Returns:
      The compiled game.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game is not two-player zero-sum, or a player forgets something
        (imperfect recall).
      TooManyHistoriesError: there are more than `max_histories` histories.
    """
    if max_histories is not None and max_histories < 1:
        raise ValueError(f"max_histories={max_histories} must be at least 1")
    game = loading.load_game(game)
    rules = expansion.of_game(game) if vectorised else None
    options: dict = {"observations": observations, "max_histories": max_histories}
    if cache is None:
        return _compile(game, rules, **options)
    return compile_cache.through(game, rules, cache, _compile, **options)


def _compile(
    game: pyspiel.Game, rules: expansion.VectorisedGame | None, **options: Any
) -> CompiledGame:
    """Compiles a checked game, by its expansion or by a walk."""
    told: tuple[list[str], list[str]] | None = None
    if rules is None:
        walked, told = state_walk.walk(game, **options)
    else:
        walked = vectorised_walk.walk(game, rules, **options)
    numbered = numbering.number(walked, game)
    histories = compiled.histories_of(walked, numbered)
    del walked
    players = numbered.players
    del numbered
    if told is None:
        return compiled.assemble(game, histories, players, rules=rules)
    first, second = (
        infostate_strings.Strings.packed([mine[i] for i in numbers.order])
        for mine, numbers in zip(told, players, strict=True)
    )
    del told
    return compiled.assemble(game, histories, players, strings=(first, second))


Game: TypeAlias = str | pyspiel.Game | CompiledGame


def as_compiled(
    game: Game,
    *,
    observations: bool = False,
    memory_limit: int | str | None = None,
    cache: storage.Path | None = None,
) -> CompiledGame:
    """Compiles unless that is done already; refuses games over the memory limit."""
    if isinstance(game, CompiledGame):
        return game
    game = loading.load_game(game)
    if memory_limit is None:
        return tree_lib.compile_game(game, observations=observations, cache=cache)
    fits = memory.check_limit(game, memory.parse_size(memory_limit))
    try:
        return tree_lib.compile_game(
            game, observations=observations, max_histories=fits, cache=cache
        )
    except TooManyHistoriesError as error:
        raise GameTooLargeError(
            f"{game} has more than {fits:,} histories, which is what "
            f"memory_limit={memory_limit} has room for; raise the limit or choose "
            f"smaller game parameters"
        ) from error
