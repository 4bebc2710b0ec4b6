"""Shapes of networks with one output for each action, and strategies from the outputs.

Outputs of illegal actions are arbitrary, and every use of them is masked.
"""

from typing import Any, NamedTuple

import numpy as np


class PerceptronShape(NamedTuple):
    """Shape of a perceptron.

    Attributes:
      features: Number F of inputs.
      actions: Number A of outputs.
      hidden: Number of units of each hidden layer.
      layers: Number of hidden layers.
    """

    features: int
    actions: int
    hidden: int
    layers: int

    @classmethod
    def of(
        cls, knowledge: Any, config: Any, *, is_joint: bool = False
    ) -> "PerceptronShape":
        """Return the shape of a network of an algorithm.

        Args:
          knowledge: Meaning of its rows, an `infosets.Knowledge`.
          config: Settings, which contain the numbers of hidden units and layers.
          is_joint: Whether its input is joint information.
        """
        features = knowledge.num_features * (2 if is_joint else 1)
        return cls(features, knowledge.num_actions, config.hidden, config.layers)

    @property
    def widths(self) -> tuple[int, ...]:
        """Numbers of units of all layers, as `networks.make` expects them."""
        return (self.features, *[self.hidden] * self.layers, self.actions)


def regret_matching(
    advantages: np.ndarray, legal: np.ndarray, fallback: str = "argmax"
) -> np.ndarray:
    """Return strategies in proportion to positive advantages, float64 [n, A].

    Args:
      advantages: Advantages, [n, A]; arbitrary at illegal actions.
      legal: Mask of legal actions, bool [n, A], at least one in each row.
      fallback: Strategy if no advantage is positive: "argmax" or "uniform".
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
    """Return the strategies of a network of averages, float64 [n, A].

    Args:
      logits: Logits, [n, A]; arbitrary at illegal actions.
      legal: Mask of legal actions, bool [n, A], at least one in each row.
    """
    inside = np.where(legal, logits, -np.inf).astype(np.float64)
    weight = np.exp(inside - inside.max(axis=1)[:, None])
    return weight / weight.sum(axis=1)[:, None]
