"""Construction of the tree of a game by one walk through it (see `tree`)."""

from typing import TypeAlias

import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.atomic import Path
from spiel_cr.common.checks import check_integer
from spiel_cr.common.errors import TooManyHistoriesError, too_many_histories
from spiel_cr.games.opening import estimate
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.foreign_code import reporting
from spiel_cr.games.opening.opened import Openable, open_game
from spiel_cr.games.tree import batched_walk, numbering, spot_check, state_walk
from spiel_cr.games.tree import cache as tree_cache
from spiel_cr.games.tree.infostate_strings import Strings, lazy_strings
from spiel_cr.games.tree.tree import MAX_HISTORIES, GameTree, assemble

Game: TypeAlias = str | pyspiel.Game | GameTree

# Additional bytes for each history that numbering needs after the walk.
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
    progress: bool | None = None,
) -> GameTree:
    """Build the tree of a game: enumerate all histories in arrays.

    Build a tree yourself to use it in several calls, such as `solve` and `evaluate`.

    Args:
      game: OpenSpiel game string, game, or opened game, with two players, zero sum and
        perfect recall. Simultaneous moves are converted to turns.
      observations: Whether to record the observations of the player who does not act.
        They make the subgames of continual re-solving smaller, and need one more string
        per decision.
      max_histories: Maximum number of histories. If None, only memory limits the tree.
      batched_rules: Whether to use the game's own batched rules, if it has them
        (`opening.batched_rules`). Otherwise the tree is built from OpenSpiel's states,
        with the same result.
      cache: Folder in which trees are stored and from which they are read again (see
        `cache.py`). If None, nothing is stored.
      memory_limit: Memory limit: bytes, or a size such as "3GB"; "none" or `math.inf`:
        no limit; None: 70% of the memory available to the process, at least 1 GB (see
        `memory.default_limit`).
      progress: Whether to show the number of histories on stderr. If None, after ten
        seconds if stderr is a terminal.

    Returns:
      The game tree.

    Raises:
      pyspiel.SpielError: If OpenSpiel does not know the game.
      GameTooLargeError: If the tree would exceed the memory limit.
      ValueError: If the game is not a two-player zero-sum game.
      ImperfectRecallError: If a player does not remember its earlier infosets and
        actions.
      InvalidGameError: If the game contradicts its declared type: probabilities or
        payoffs are invalid, returns do not sum to zero, an infoset has different
        actions, or a second walk differs from the first. The message names the history.
      TooManyHistoriesError: If there are more than `max_histories` histories.

    Example:
      >>> import spiel_cr
      >>> tree = spiel_cr.build_tree("kuhn_poker")
      >>> len(tree.histories)
      58
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
            return _compile(game, rules, observations, most, watch)

    try:
        if cache is None:
            return compile_now()
        tree = tree_cache.through(game, rules, cache, compile_now, observations)
        if len(tree.histories) > most:  # The file may hold a larger tree.
            raise too_many_histories(game, most)
        return tree
    except TooManyHistoriesError as error:
        if limit <= fits:
            raise
        reason = f"has more than {fits:,} histories"
        raise memory.too_large(game, reason, memory_limit, size) from error


def _compile(
    game: pyspiel.Game,
    rules: BatchedRules | None,
    observations: bool,
    limit: int,
    watch: estimate.Watch,
) -> GameTree:
    """Build the tree of a checked game, by its batched rules or OpenSpiel's states."""
    strings = tuple[list[str], ...]()
    if rules is None:
        walked, strings = state_walk.walk(
            game, observations=observations, max_histories=limit, watch=watch
        )
    else:
        walked = batched_walk.walk(
            *(game, rules), observations=observations, max_histories=limit, watch=watch
        )
    spot_check.check(game, walked, strings or None)
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
    max_histories: int | None = None,
    memory_limit: memory.Limit = None,
    progress: bool | None = None,
) -> GameTree:
    """Return the tree of a game, building it unless it is a tree already.

    Args:
      game: OpenSpiel game string, game, or game tree, which is returned unchanged.
      observations: Whether to record observations; see `build_tree`.
      max_histories: Maximum number of histories of a tree that is built.
      memory_limit: Memory limit; see `build_tree`.
      progress: Whether to show progress; see `build_tree`.

    Raises:
      GameTooLargeError: If the tree would exceed the memory limit.
      ValueError: As in `build_tree`.
    """
    if isinstance(game, GameTree):
        memory.parse_limit(memory_limit)
        return game
    return build_tree(
        game,
        observations=observations,
        max_histories=max_histories,
        memory_limit=memory_limit,
        progress=progress,
    )
