"""What tests of `spiel_cr.deep` share: fixed strategies and critics, all draws."""

import numpy as np

from spiel_cr.deep.infosets import CompiledKnowledge, Seen
from tests.support.made_games import TERMINAL, Node, Path


class Fixed:
    """Strategies of a compiled game that never change.

    Attributes:
      behaviour: for each player float64 [S].
    """

    def __init__(self, knowledge: CompiledKnowledge, seed: int) -> None:
        """Multiples of 1/4, none of them zero at two or three legal actions."""
        random = np.random.default_rng(seed)
        self._tables = []
        for legal in knowledge.legal:
            table = np.zeros(legal.shape)
            for row, mask in enumerate(legal):
                actions = np.flatnonzero(mask)
                shares = np.ones(len(actions))
                shares[random.integers(len(actions))] += 4 - len(actions)
                table[row, actions] = shares / 4 if len(actions) > 1 else 1.0
            self._tables.append(table)
        self.behaviour = [knowledge.behaviour(p, self._tables[p]) for p in range(2)]

    def __call__(self, player: int, seen: Seen) -> np.ndarray:
        return self._tables[player][seen.rows]


class Listed:
    """In place of a generator: draws that somebody has listed, step by step."""

    def __init__(self, draws: list[np.ndarray]) -> None:
        """One array for each call, as long as what is asked for."""
        self._draws = list(draws)

    def random(self, count: int) -> np.ndarray:
        """The next draws."""
        draws = self._draws.pop(0)
        assert len(draws) == count
        return draws


def twice_in_a_row(path: Path) -> Node:
    """Player 0 moves twice, then player 1 twice, who sees the first move alone.

    Player 0 remembers its own moves; player 1 is told the first one.
    """
    infos = (f"0 did {path[:2]}", f"1 saw {path[:1]} and did {path[2:]} at {len(path)}")
    if len(path) == 4:
        first, second, third, fourth = path
        pays = 3 * (first == third) - 2 * (second != fourth) + (second & third) - 0.5
        return Node(TERMINAL, utility=float(pays))
    return Node(0 if len(path) < 2 else 1, (0, 1), infos)
