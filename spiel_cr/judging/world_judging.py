"""Policies of large hidden-board games are judged by way of their worlds."""

from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.errors import GameTooLargeError, ImperfectRecallError
from spiel_cr.common.memory import Limit
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.signals.game import SignalGame
from spiel_cr.games.tree.compiler import Game
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.games.worlds.game import WorldGame, shared_worlds
from spiel_cr.games.worlds.hidden import hidden_board
from spiel_cr.players.given_players import tree_of
from spiel_cr.policies.world_policy import (
    MoreKnowledgeError,
    WorldPolicy,
    behaviour_from_policy,
)
from spiel_cr.solvers.laying_out import WORLDS, prefer


def has_worlds(game: Game, memory_limit: Limit = None) -> bool:
    """Whether a game is judged by its worlds; builds nothing, takes up to a second.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      memory_limit: what compiling may take.
    """
    if isinstance(game, CompiledGame | SignalGame):
        return False
    opened = open_game(game)
    if hidden_board(opened.rules) is None:
        return False
    return prefer(opened, memory_limit).form == WORLDS


def worlds_of(game: Game, memory_limit: Limit = None) -> WorldGame | None:
    """The worlds by which policies of a game are judged; None: it is compiled instead.

    Raises:
      GameTooLargeError: they take more memory than the limit.
    """
    if isinstance(game, CompiledGame | SignalGame):
        return None
    opened = open_game(game)
    judged = has_worlds(game, memory_limit)
    if not judged and hidden_board(opened.rules) is not None:
        try:
            tree_of(game, memory_limit)
        except ImperfectRecallError:
            judged = True
    return shared_worlds(opened, memory_limit) if judged else None


def in_worlds(
    game: Game, policy: openspiel_policy.Policy, memory_limit: Limit = None
) -> WorldPolicy | None:
    """A policy by the worlds of its game.

    None where these do not fit, or are none, or where the policy depends on more than
    what its player did and was told.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      policy: of both players; asked at every infoset.
      memory_limit: of the whole process.
    """
    if isinstance(policy, WorldPolicy):
        return policy
    try:
        worlds = worlds_of(game, memory_limit)
        return None if worlds is None else of_policy(worlds, policy)
    except (GameTooLargeError, MoreKnowledgeError):
        return None


def of_policy(worlds: WorldGame, policy: openspiel_policy.Policy) -> WorldPolicy:
    """A policy that was asked at every infoset of a game."""
    if isinstance(policy, WorldPolicy) and policy.worlds is worlds:
        return policy
    return WorldPolicy(worlds, behaviour_from_policy(worlds, policy, progress=True))
