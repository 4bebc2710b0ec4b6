"""A strategy of a signal game as an OpenSpiel policy, which is never a table."""

from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_integer
from spiel_cr.games.public_tree import public_nodes
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.policies.conversions import StatePolicy, check_numbers, odd_infoset

# Probabilities that are checked at a time.
_CHUNK = 1 << 22


class PublicTreePolicy(StatePolicy):
    """Action probabilities by public node and signal, for both players.

    A state is looked up when it is asked for: its players' actions lead to the public
    node, and the game's reader says the signal.

    Attributes:
      signals: the game.
      behaviour: for each player float64 or float32 [S], action probabilities by logical
        sequence.
      decisions: for each player, where its sequences lie.
      finder: of public nodes.
    """

    def __init__(
        self, signals: PublicTreeGame, behaviour: Sequence[np.ndarray]
    ) -> None:
        """Takes the probabilities as they are, without a copy.

        Args:
          signals: the game.
          behaviour: for each player float64 or float32 [S], by logical sequence.

        Raises:
          ValueError: they are of another size or type, or no probabilities.
        """
        super().__init__(signals.game)
        self.signals = signals
        self.decisions = tuple(signals.public_decisions[player] for player in range(2))
        self.finder = signals.finder
        self.behaviour = tuple(behaviour)
        if len(self.behaviour) != 2:
            raise ValueError(
                f"behaviour: {len(self.behaviour)} arrays were given; give two, one "
                f"for each player"
            )
        for player in range(2):
            self._check(player)

    @property
    def form(self) -> PublicTreeGame:
        """The game."""
        return self.signals

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """See `StatePolicy`."""
        node = self.finder.of_state(state)
        actions, legal = self.finder.actions(node), state.legal_actions()
        if self.signals.betting.player[node] != player or actions != sorted(legal):
            raise ValueError(
                f"state: after the actions {state.history()} player {player} has the "
                f"actions {sorted(legal)}, and the policy has {actions} there; give it "
                f"states of {self.game}"
            )
        signal = self.signals.reader.signal(state, player)
        found = self.probabilities(node)[signal].astype(np.float64)
        return dict(zip(actions, (found / found.sum()).tolist(), strict=True))

    def probabilities(self, node: int) -> np.ndarray:
        """The strategy at a public node: a view [H, A], a row for each signal.

        Raises:
          ValueError: there is no such node, or nobody acts there.
        """
        node = check_integer(node, "node", 0, len(self.signals.betting) - 1)
        player = int(self.signals.betting.player[node])
        if player not in (0, 1):
            raise ValueError(
                f"node={node}: nobody acts there, for it is an end; give a node with "
                f"actions"
            )
        return self.decisions[player].block(self.behaviour[player], node)

    def _check(self, player: int) -> None:
        """Raises ValueError where a player's numbers are no strategy."""
        decisions, given = self.decisions[player], self.behaviour[player]
        whose = f"behaviour of player {player}"
        check_numbers(given, decisions.num_sequences, whose)
        for part in public_nodes.parts(decisions, _CHUNK):
            ends = decisions.first_sequence[[part.start, part.stop]]
            played = given[slice(*ends)]
            starts = public_nodes.infoset_starts(decisions, part)
            odd = odd_infoset(played, starts)
            if odd is None:
                continue
            row = np.split(played, starts[1:])[odd].tolist()
            infoset = int(decisions.first_infoset[part.start]) + odd
            j = int(np.searchsorted(decisions.first_infoset, infoset, "right")) - 1
            signal = infoset - int(decisions.first_infoset[j])
            path = self.signals.betting.path(int(decisions.node[j]))
            raise ValueError(
                f"{whose} has the probabilities {row} after the players' actions "
                f"{path} with signal {signal}; they must be at least 0 and sum to 1"
            )
