"""Second stage: a game is walked once and becomes a `CompiledGame`, numpy arrays.

What these arrays are is said in `compiled.py`.
"""

import os
from typing import Any

import pyspiel

from spiel_cr.compilation import cache as compile_cache
from spiel_cr.compilation import (
    infostate_strings,
    loading,
    numbering,
    state_walk,
    vectorised_walk,
)
from spiel_cr.compilation import tree as compiled
from spiel_cr.compilation import vectorised as expansion
from spiel_cr.partial import simulator
from spiel_cr.partial import tree as growing

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
    edge: str | simulator.EdgeValue | None = None,
) -> CompiledGame:
    """Walks a game once and lays it out as arrays.

    Args:
      game: OpenSpiel game string or game: two players, zero-sum, perfect recall.
        Simultaneous moves are converted to turns.
      observed: also record what the player who does not act is told, which makes the
        subgames of continual resolving smaller. Costs one more string a decision.
      max_histories: refuse games with more histories than this, or, with `edge`,
        compile so many of them.
      vectorised: play by the game's own rules on arrays, if it has them (see
        `expansion.py`); else, and with False, walk over OpenSpiel's states. The result
        is the same.
      cache: a folder in which compiled games are kept, so that the same game need not
        be compiled again (see `compile_cache.py`).
      edge: compile a game with more than `max_histories` histories in part: whole
        levels as long as they fit, and of the next one whole infosets, those first
        that chance and uniform play lead to. The other histories there are terminals
        of the compiled game, worth "rollout", "rollout(n=4,seed=0)" (the mean of random
        playouts), or what a function says, from an array of states (`pyspiel.State`s,
        or those of the game's expansion) to float64 [n], player 0's utilities.
        `CompiledGame.edge` tells which ones. `growing.py` has trees that grow.

    Returns:
      The compiled game.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game is not two-player zero-sum, or a player forgets something
        (imperfect recall); or `edge` without `max_histories`, with a `cache` (which
        holds whole games), or with no room for a decision of each player.
      TooManyHistoriesError: there are more than `max_histories` histories, and no
        `edge`.
    """
    if max_histories is not None and max_histories < 1:
        raise ValueError(f"max_histories={max_histories} must be at least 1")
    if edge is not None:
        return _part(
            game, max_histories, edge, cache, observed=observed, vectorised=vectorised
        )
    game = loading.load_game(game)
    rules = expansion.of_game(game) if vectorised else None
    options: dict = {"observed": observed, "max_histories": max_histories}
    if cache is None:
        return _compile(game, rules, **options)
    return compile_cache.through(game, rules, cache, _compile, **options)


def _part(
    game: str | pyspiel.Game,
    max_histories: int | None,
    edge: str | simulator.EdgeValue,
    cache: str | os.PathLike[str] | None,
    **options: bool,
) -> CompiledGame:
    """Compiles as much of a game as there is room for."""
    if max_histories is None:
        raise ValueError("edge needs max_histories, the most histories to compile")
    if cache is not None:
        raise ValueError("cache holds whole games; leave it out with edge")
    part = growing.GrowingTree(game, max_histories, edge=edge, **options)
    part.grow()
    if len(part) == 1 and not part.is_whole:
        raise ValueError(
            f"max_histories={max_histories} has no room for the first moves of "
            f"{part.game}; raise it"
        )
    tree = part.compile().tree
    for player, infosets in enumerate(tree.infosets):
        if tree.edge is not None and not len(infosets):
            raise ValueError(
                f"max_histories={max_histories} has no room for a decision of player "
                f"{player} in {part.game}; raise it"
            )
    return tree


def _compile(
    game: pyspiel.Game, rules: expansion.Expansion | None, **options: Any
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
