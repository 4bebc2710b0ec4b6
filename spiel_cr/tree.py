"""Second stage: a game is walked once and becomes a `CompiledGame`, numpy arrays.

What these arrays are is said in `compiled.py`.
"""

import os
from typing import Any

import numpy as np
import pyspiel

from spiel_cr import (
    compile_cache,
    compiled,
    expansion,
    information,
    loading,
    numbering,
    walk,
)

__all__ = [
    "CHANCE",
    "TERMINAL",
    "CompiledGame",
    "Histories",
    "Infosets",
    "TooManyHistoriesError",
    "compile_game",
]

CHANCE = numbering.CHANCE
TERMINAL = numbering.TERMINAL
TooManyHistoriesError = numbering.TooManyHistoriesError
CompiledGame = compiled.CompiledGame
Histories = compiled.Histories
Infosets = compiled.Infosets


def compile_game(
    game: str | pyspiel.Game,
    *,
    observed: bool = False,
    max_histories: int | None = None,
    vectorised: bool = True,
    cache: str | os.PathLike[str] | None = None,
) -> CompiledGame:
    """Walks a game once and lays it out as arrays.

    Args:
      game: OpenSpiel game string or game: two players, zero-sum, perfect recall.
        Simultaneous moves are converted to turns.
      observed: also record what the player who does not act is told, which makes the
        subgames of continual resolving smaller. Costs one more string a decision.
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
    options: dict = {"observed": observed, "max_histories": max_histories}
    if cache is None:
        return _compile(game, rules, **options)
    return compile_cache.through(game, rules, cache, _compile, **options)


def _compile(
    game: pyspiel.Game, rules: expansion.Expansion | None, **options: Any
) -> CompiledGame:
    """Compiles a checked game, by its expansion or by a walk."""
    told: tuple[list[str], list[str]] | None = None
    if rules is None:
        walked, told = walk.walk(game, **options)
    else:
        walked = expansion.expand(game, rules, **options)
    numbered = numbering.number(walked, game)
    histories = _histories(walked, numbered)
    del walked
    players = numbered.players
    del numbered
    if told is None:
        return compiled.assemble(game, histories, players, rules=rules)
    first, second = (
        information.Strings.packed([mine[i] for i in numbers.order])
        for mine, numbers in zip(told, players, strict=True)
    )
    del told
    return compiled.assemble(game, histories, players, strings=(first, second))


def _histories(walked: numbering.Walked, numbered: numbering.Numbered) -> Histories:
    """The histories as they stay: numbered, and no wider than needed."""
    chance = walked.chance
    if chance is None or (chance == 1.0).all():
        chance = np.broadcast_to(1.0, len(walked.parent))
    actions = numbering.smallest_dtype(int(walked.action.max()))
    return Histories(
        parent=walked.parent,
        action=walked.action.astype(actions, copy=False),
        player=walked.player,
        infoset=numbered.infoset,
        observed=numbered.observed,
        sequence=numbered.sequence,
        chance=chance,
        utility=walked.utility,
        level_start=walked.level_start,
    )
