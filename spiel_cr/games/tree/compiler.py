"""A game is walked once and becomes a `GameTree` (see `tree`)."""

from typing import TypeAlias

import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.atomic import Path
from spiel_cr.common.checks import check_integer
from spiel_cr.common.errors import TooManyHistoriesError, too_many_histories
from spiel_cr.games.opening import estimate
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.foreign_code import reporting
from spiel_cr.games.opening.opened import Openable, Opened, open_game
from spiel_cr.games.tree import batched_walk, numbering, spot_check, state_walk
from spiel_cr.games.tree import cache as tree_cache
from spiel_cr.games.tree.infostate_strings import Strings, lazy_strings
from spiel_cr.games.tree.tree import MAX_HISTORIES, GameTree, assemble

Game: TypeAlias = str | pyspiel.Game | GameTree

# What is yet to come when a walk is at its end, for each history: numbering.
_BYTES_AFTER = 75


@reporting
def build_tree(
    game: Openable,
    *,
    observations: bool = False,
    max_histories: int | None = None,
    batched_rules: bool = True,
    cache: Path | None = None,
    memory_limit: memory.Limit = None,
    progress: bool = False,
) -> GameTree:
    """Walks a game once and lays it out as arrays.

    Args:
      game: OpenSpiel game string, game, or one that is open: two players, zero-sum,
        perfect recall. Simultaneous moves are converted to turns.
      observations: also record the observations of the player who does not act, which
        makes the subgames of continual resolving smaller. Costs one more string per
        decision.
      max_histories: refuse games with more histories than this.
      batched_rules: Whether to use the game's own batched rules, if it has them
        (`opening.batched_rules`). Otherwise the tree is built from OpenSpiel's states,
        with the same result.
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
        limit = check_integer(max_histories, "max_histories", 1)
    opened = open_game(game)
    game, rules = opened.game, opened.rules if batched_rules else None

    size = memory.parse_limit(memory_limit)
    fits = memory.histories_within(size)
    most = min(limit, fits)

    def compile_now() -> GameTree:
        estimate.check_limit(game, memory_limit)
        with estimate.Watch(
            *(game, memory_limit, "walking", "histories"),
            later=_BYTES_AFTER,
            progress=progress,
        ) as watch:
            return _compile(opened, rules, observations, most, watch)

    try:
        if cache is None:
            return compile_now()
        tree = tree_cache.through(game, rules, cache, compile_now, observations)
        if len(tree.histories) > most:  # of what was read
            raise too_many_histories(game, most)
        return tree
    except TooManyHistoriesError as error:
        if limit <= fits:
            raise
        reason = f"has more than {fits:,} histories"
        raise memory.too_large(game, reason, memory_limit, size) from error


def _compile(
    opened: Opened,
    rules: BatchedRules | None,
    observations: bool,
    limit: int,
    watch: estimate.Watch,
) -> GameTree:
    """Compiles a checked game, by its batched rules or by a walk over its states."""
    game, strings = opened.game, tuple[list[str], ...]()
    if rules is None:
        walked, strings = state_walk.walk(
            game, observations=observations, max_histories=limit, watch=watch
        )
    else:
        walked = batched_walk.walk(
            *(game, rules), observations=observations, max_histories=limit, watch=watch
        )
    spot_check.check(opened, walked, strings or None)
    histories, infosets, labels = numbering.number(walked, game)
    del walked
    keys = [
        lazy_strings(game, rules, histories, infosets_of_player.history, p)
        if rules is not None
        else Strings.packed([strings[p][label] for label in labels[p]])
        for p, infosets_of_player in enumerate(infosets)
    ]
    del strings
    return assemble(game, histories, infosets, keys)


def as_tree(
    game: Game,
    *,
    observations: bool = False,
    memory_limit: memory.Limit = None,
    progress: bool = False,
) -> GameTree:
    """Compiles unless that is done already.

    Args:
      game: OpenSpiel game string, game, or compiled game, which is returned as it is.
      observations: as for `build_tree`, and so are all others.

    Raises:
      GameTooLargeError: the game would take more memory than the limit.
      ValueError: as `build_tree`.
    """
    if isinstance(game, GameTree):
        memory.parse_limit(memory_limit)
        return game
    return build_tree(
        game, observations=observations, memory_limit=memory_limit, progress=progress
    )
