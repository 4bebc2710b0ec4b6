"""Networks that give a number for each action, and strategies by these numbers.

Numbers of actions that are not legal mean nothing, and every use of them is masked.
"""

from typing import NamedTuple

import numpy as np


class Shape(NamedTuple):
    """What a perceptron is made of.

    Attributes:
      features: F, numbers that it sees.
      actions: A, numbers that it gives.
      hidden: units of each hidden layer.
      layers: hidden layers.
    """

    features: int
    actions: int
    hidden: int
    layers: int

    @property
    def widths(self) -> tuple[int, ...]:
        """As `networks.make` takes them."""
        return (self.features, *[self.hidden] * self.layers, self.actions)


def regret_matching(
    advantages: np.ndarray, legal: np.ndarray, fallback: str = "argmax"
) -> np.ndarray:
    """Strategies in proportion to positive advantages, float64 [n, A].

    Args:
      advantages: [n, A]; anything where an action is not legal.
      legal: bool [n, A], at least one in a row.
      fallback: "argmax" or "uniform", where no advantage is positive.
    """
    positive = np.where(legal, np.maximum(advantages, 0), 0).astype(np.float64)
    total = positive.sum(axis=1)
    none = ~(total > 0)
    if none.any():
        if fallback == "argmax":
            best = np.where(legal[none], advantages[none], -np.inf).argmax(axis=1)
            positive[none] = np.arange(legal.shape[1]) == best[:, None]
        else:
            positive[none] = legal[none]
        total[none] = positive[none].sum(axis=1)
    return positive / total[:, None]


def softmax(logits: np.ndarray, legal: np.ndarray) -> np.ndarray:
    """Strategies of a network of averages, float64 [n, A].

    Args:
      logits: [n, A]; anything where an action is not legal.
      legal: bool [n, A], at least one in a row.
    """
    inside = np.where(legal, logits, -np.inf).astype(np.float64)
    weight = np.exp(inside - inside.max(axis=1)[:, None])
    return weight / weight.sum(axis=1)[:, None]
