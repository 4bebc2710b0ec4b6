"""Strategies of networks in the form of signals, where they are judged exactly.

For games like liar's dice, whose tree is too large to be compiled: private information
is dealt once, before anybody acts, and after that all actions are public. A strategy
that can be asked at decisions is asked at all of them, public node by public node and
signal by signal.
"""

from typing import Any

import numpy as np

from spiel_cr.common.arrays import ranges
from spiel_cr.compilation import vectorised
from spiel_cr.compilation.tree import CHANCE
from spiel_cr.deep.infosets import Seen
from spiel_cr.deep.traversal import Strategy
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.sequence_form.layout import SequenceForm
from spiel_cr.signals import form as signal_form
from spiel_cr.signals import public_nodes
from spiel_cr.signals.game import SignalGame
from spiel_cr.signals.loading import signal_game

# Public nodes that are looked at together.
_NODES = 1 << 12


def nash_conv(game: str, strategy: Strategy) -> float:
    """NashConv of a strategy that is asked everywhere, in the game's units.

    Args:
      game: a string of OpenSpiel; see `behaviour_of` for which.
      strategy: of both players.

    Raises:
      ValueError: the game has other rounds, or no rules on arrays that give tensors.
    """
    judge = Judge(signal_game(game))
    return judge.nash_conv(behaviour_of(judge.signals, strategy))


def behaviour_of(signals: SignalGame, strategy: Strategy) -> list[np.ndarray]:
    """A strategy at all public nodes and signals.

    Args:
      signals: a game with one round of signals, and rules on arrays with tensors.
      strategy: of both players; it sees information-state tensors.

    Returns:
      Of each player float32 [S], action probabilities by logical sequence.

    Raises:
      ValueError: the game has other rounds, or no such rules.
    """
    rules: Any = vectorised.of_game(signals.game)
    if signals.num_rounds != 1 or not hasattr(rules, "information_state_tensor"):
        raise ValueError(
            f"{signals.game}: needs one round of signals and rules on arrays that give "
            f"information-state tensors; compile the game to judge it"
        )
    betting, finder = signals.betting, public_nodes.Finder(signals)
    width = signals.game.num_distinct_actions()
    decisions = [public_nodes.public_decisions(signals, p) for p in range(2)]
    found = [np.ones(own.num_sequences, np.float32) for own in decisions]
    dealt = _one_deal_each(signals, rules)
    stack = [(np.zeros(1, np.int64), [rows[None] for rows in dealt])]
    while stack:
        nodes, states = stack.pop()
        for player, own in enumerate(decisions):
            here = np.flatnonzero(betting.player[nodes] == player)
            if not len(here):
                continue
            rows = states[player][here]
            rows = rows.reshape(-1, *rows.shape[2:])
            legal = rules.legal_actions_mask(rows)[:, :width]
            seen = rules.information_state_tensor(rows, player)
            place = np.searchsorted(own.node, nodes[here])
            first = own.first_sequence[place]
            counts = own.first_sequence[place + 1] - first
            # Signal by signal, and of one signal action by action, as they lie there.
            played = strategy(player, Seen(seen, legal))
            found[player][ranges(first, counts)] = played[legal]
        below = [finder.children(int(node)) for node in nodes]
        parent = np.repeat(np.arange(len(nodes)), [len(own) for own in below])
        children = np.concatenate(below)
        acts = betting.player[children] >= 0
        parent, children = parent[acts], children[acts]
        for begin in range(0, len(children), _NODES):
            some = slice(begin, begin + _NODES)
            after = []
            for rows in states:
                above = rows[parent[some]]
                action = np.repeat(betting.action[children[some]], above.shape[1])
                flat = above.reshape(-1, *above.shape[2:])
                moved = rules.child(flat, action.astype(np.int64))
                after.append(moved.reshape(above.shape))
            stack.append((children[some].astype(np.int64), after))
    return found


def _one_deal_each(
    signals: SignalGame, rules: vectorised.VectorisedGame
) -> list[np.ndarray]:
    """Of each player states [H, ...] after the deal, one for each of its signals."""
    rows, states = rules.new_initial_states(), [signals.game.new_initial_state()]
    while (rules.current_player(rows) == CHANCE).all():
        parent, action = np.nonzero(rules.legal_actions_mask(rows))
        rows = rules.child(rows[parent], action)
        states = [states[i].child(int(a)) for i, a in zip(parent, action, strict=True)]
    found = []
    for player in range(2):
        signal = [signals.reader.signal(state, player) for state in states]
        numbers, first = np.unique(signal, return_index=True)
        assert numbers.tolist() == list(range(signals.num_signals(player)[0]))
        found.append(rows[first])
    return found


class Judge:
    """Judges strategies of one signal game exactly.

    Attributes:
      signals: the game.
    """

    def __init__(self, signals: SignalGame) -> None:
        """Lays the game out."""
        self.signals = signals
        self._form: SequenceForm = signal_form.form_of(signals)

    def nash_conv(self, behaviour: list[np.ndarray]) -> float:
        """NashConv in the game's units.

        Args:
          behaviour: of each player float32 or float64 [S], by logical sequence.
        """
        reach = []
        for own, played in zip(self._form.decisions, behaviour, strict=True):
            exact = played.astype(np.float64)
            # Rounded to float32, they do not sum to 1.
            total = np.bincount(own.owner[1:], exact[1:])
            exact[1:] /= total[own.owner[1:]]
            reach.append(reach_from_behaviour(own, exact))
        return best_responses.nash_conv(self._form, (reach[0], reach[1]))
