"""Where a response learns: a source of histories, and an opponent who plays on it."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.evaluation.root_responses import players
from spiel_cr.evaluation.targets import Target
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.simulator import FixedPlayer, Positions, Simulator, play
from spiel_cr.games.simulation.state_source import StateSource
from spiel_cr.policies.rollouts import by_legal_actions
from spiel_cr.solvers.deep.averages import SOFTMAX
from spiel_cr.solvers.deep.network_policy import DeepPolicy
from spiel_cr.solvers.deep.tensors import stepped
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy

_TENSORS = "information_state"
# Actions at all decisions of matches side by side, each of which has a list of them.
_MOST_ACTIONS = 1 << 23

# Of positions, places of them, and the matches that these belong to: int64 [n], the
# place of an action among the legal ones.
Actor: TypeAlias = Callable[[Positions, np.ndarray, np.ndarray], np.ndarray]


class Setting(NamedTuple):
    """A game and a fixed opponent.

    Attributes:
      source: of histories.
      opponent: plays the other seat.
      own: plays the responder's where that knows nothing.
    """

    source: Simulator
    opponent: FixedPlayer
    own: FixedPlayer

    def side_by_side(self, most: int) -> int:
        """How many matches to play side by side: at most so many, and as memory allows.

        Args:
          most: where decisions have few actions.
        """
        return max(1, min(most, _MOST_ACTIONS // max(self.source.max_actions, 1)))

    def play(
        self, player: int, count: int, random: np.random.Generator, respond: Actor
    ) -> np.ndarray:
        """float64 [count], a responder's returns in matches side by side.

        Args:
          player: its seat.
          count: of matches.
          random: draws chance and the opponent; consumed.
          respond: gives the responder's actions where it is to act, see `play`.
        """

        def act(
            positions: Positions, live: np.ndarray, match: np.ndarray
        ) -> np.ndarray:
            action = np.zeros(len(live), np.int64)
            responds = positions.player[live] == player
            if not responds.all():
                others = live[~responds]
                action[~responds] = self.opponent.draw(positions, others, random)
            if responds.any():
                action[responds] = respond(positions, live[responds], match[responds])
            return action

        utility = play(self.source, count, random, act)
        return -utility if player else utility


def of_target(target: Target, *, use_rules: bool = True) -> Setting:
    """Where responses to a target learn and are judged.

    Args:
      target: the opponent.
      use_rules: as of `on_states`.
    """
    if target.rivals is not None:
        return on_bot(target.game, target.rivals)
    return on_states(target.game, target.policy, use_rules=use_rules)


def warm_up(source: Simulator) -> None:
    """Plays one match at random."""
    random, anyone = np.random.default_rng(0), players.UniformPlayer()
    play(source, 1, random, lambda now, live, _: anyone.draw(now, live, random))


def own_policy(target: Target) -> openspiel_policy.Policy:
    """How a responder plays where it knows nothing: as the target does in its seat.

    At random where the target is known by its moves alone.
    """
    if target.rivals is not None:
        return openspiel_policy.UniformRandomPolicy(target.game)
    return target.policy


def on_states(
    game: pyspiel.Game, policy: openspiel_policy.Policy, *, use_rules: bool = True
) -> Setting:
    """A game that is not compiled, by its batched rules if the policy plays on them.

    That do uniform policies and chumps, tables (those by strings where the rules make
    strings), and networks. Any other policy is asked on OpenSpiel's states, once for
    each information state.

    Args:
      game: a sequential game.
      policy: of both seats; must depend on information states only.
      use_rules: take the game's batched rules where that is possible.
    """
    source, player = _plays_on(Opened(game), policy, use_rules)
    return Setting(source, player, player)


def _plays_on(
    opened: Opened, policy: openspiel_policy.Policy, use_rules: bool
) -> tuple[Simulator, FixedPlayer]:
    """See `on_states`."""
    game = opened.game
    rules = opened.rules if use_rules else None
    source = StateSource(game) if rules is None else RulesSource(game, rules)
    if type(policy) is openspiel_policy.UniformRandomPolicy:
        return source, players.UniformPlayer()
    if isinstance(policy, TablePolicy) and policy.beyond is None:
        if isinstance(policy.source, RulesSource) == (rules is not None):
            return source, players.TablePlayer(policy.strategy)
    if isinstance(policy, DeepPolicy):
        average = policy.average
        if average.rule == SOFTMAX and average.features == _TENSORS:
            found = stepped(opened, _TENSORS, use_rules=use_rules)
            return found.source, players.NetworkPlayer(found.knowledge, policy)
    tabular = isinstance(policy, openspiel_policy.TabularPolicy)
    if rules is None or tabular and hasattr(rules, "information_state_strings"):
        return source, players.StatePlayer(policy, source)
    if by_legal_actions(policy):
        return source, players.LegalPlayer(game, policy)
    return _plays_on(opened, policy, False)


def on_bot(game: pyspiel.Game, bots: Sequence[pyspiel.Bot]) -> Setting:
    """A game on OpenSpiel's states, against bots that are known by their moves alone.

    Args:
      game: a sequential game.
      bots: of player 0 and of player 1.
    """
    return Setting(StateSource(game), players.BotPlayer(bots), players.UniformPlayer())
