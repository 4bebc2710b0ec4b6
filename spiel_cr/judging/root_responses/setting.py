"""Where a response learns: a source of histories, and an opponent who plays on it."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.stepping.rules_source import RulesSource
from spiel_cr.games.stepping.simulator import FixedPlayer, Simulator
from spiel_cr.games.stepping.state_source import StateSource
from spiel_cr.games.stepping.tree_source import TreeSource
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging.root_responses.players import (
    BotPlayer,
    LegalPlayer,
    SeenPlayer,
    StatePlayer,
    TablePlayer,
    UniformPlayer,
)
from spiel_cr.policies.rollouts import by_legal_actions
from spiel_cr.solvers.deep.averages import SOFTMAX
from spiel_cr.solvers.deep.infosets import CompiledKnowledge, Knowledge, Seen
from spiel_cr.solvers.deep.network_policy import DeepPolicy
from spiel_cr.solvers.deep.tensors import stepped
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy

_TENSORS = "information_state"


class Setting(NamedTuple):
    """A game and a fixed opponent.

    Attributes:
      source: of histories.
      opponent: plays both seats.
      tree: the game, if it is compiled.
    """

    source: Simulator
    opponent: FixedPlayer
    tree: CompiledGame | None = None


def on_tree(tree: CompiledGame, behaviour: Sequence[np.ndarray]) -> Setting:
    """A compiled game.

    Args:
      tree: the game.
      behaviour: of each player float64 [S], its action probabilities.
    """
    knowledge = CompiledKnowledge(tree, _TENSORS)
    odds = [
        np.where(
            knowledge.legal[player], behaviour[player][knowledge.sequence[player]], 0.0
        )
        for player in range(2)
    ]

    def strategy(player: int, seen: Seen) -> np.ndarray:
        found: np.ndarray = odds[player][seen.rows]
        return found

    # Chance is drawn independently, so that matches are.
    source = TreeSource(tree, stratified=False)
    return Setting(source, SeenPlayer(knowledge, strategy), tree)


def on_states(
    game: pyspiel.Game, policy: openspiel_policy.Policy, *, use_rules: bool = True
) -> Setting:
    """A game that is not compiled, by its rules on arrays if the policy plays on them.

    That do uniform policies and chumps, tables, and networks. Any other policy is asked
    on OpenSpiel's states, once for each information state.

    Args:
      game: a sequential game.
      policy: of both seats; must depend on information states only.
      use_rules: take the game's rules on arrays where that is possible.
    """
    source, knowledge = _source_of(game, use_rules)
    arrays = isinstance(source, RulesSource)
    if type(policy) is openspiel_policy.UniformRandomPolicy:
        return Setting(source, UniformPlayer())
    if isinstance(policy, TablePolicy):
        if isinstance(policy.source, RulesSource) == arrays:
            return Setting(source, TablePlayer(policy.strategy))
        if use_rules and not arrays:
            return Setting(policy.source, TablePlayer(policy.strategy))
    if isinstance(policy, DeepPolicy) and knowledge is not None:
        average = policy.average
        if average.rule == SOFTMAX and average.features == _TENSORS:
            return Setting(source, _networks(policy, knowledge))
    if arrays and knowledge is not None and by_legal_actions(policy):
        return Setting(source, LegalPlayer(game, policy, knowledge))
    if arrays:
        return on_states(game, policy, use_rules=False)
    return Setting(source, StatePlayer(policy))


def on_bot(game: pyspiel.Game, bots: Sequence[pyspiel.Bot]) -> Setting:
    """A game on OpenSpiel's states, against bots that are known by their moves alone.

    Args:
      game: a sequential game.
      bots: of player 0 and of player 1.
    """
    source, _ = _source_of(game, False)
    return Setting(source, BotPlayer(bots))


def _source_of(
    game: pyspiel.Game, use_rules: bool
) -> tuple[Simulator, Knowledge | None]:
    """Who plays the moves, and what networks see, where the game has tensors."""
    if game.get_type().provides_information_state_tensor:
        return stepped(Opened(game), _TENSORS, use_rules=use_rules)
    return StateSource(game), None


def _networks(policy: DeepPolicy, knowledge: Knowledge) -> SeenPlayer:
    """Networks that answer many decisions at once."""

    def strategy(player: int, seen: Seen) -> np.ndarray:
        found: np.ndarray = policy.strategies(seen.rows, seen.legal, player)[0]
        return found

    return SeenPlayer(knowledge, strategy)
