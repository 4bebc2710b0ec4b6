"""Exact evaluation of strategies by OpenSpiel's tools in C++.

`spiel_cr.evaluation.openspiel_evaluator` calls OpenSpiel's Python tools, which take a
minute where these take a second. Both compute the same numbers, and a test compares
them.
"""

from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common import memory
from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.evaluation.result import Evaluation
from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.policies import best_responses
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.policies.conversions import behaviour_from_reach, check_behaviour
from spiel_cr.solvers import footprint

from .game_instance import GameInstance

OPENSPIEL = "OpenSpiel"
SPIEL_CR = "spiel_cr"

# OpenSpiel's tools build an object for every history. For more histories than this,
# they need too much memory and time.
_MOST_HISTORIES = 2_000_000
# Bytes per history, also for a game that is converted to C++.
_HISTORY, _HISTORY_PYTHON = 1350, 2450
# Number of histories for which OpenSpiel's tools compute a point of a curve in 3 s.
_QUICK_HISTORIES = 50_000
# Probabilities in float32 do not sum to 1 exactly.
_SUM_TOLERANCE = 1e-3
# Tolerance of the comparison of both tools, relative to the largest payoff.
_AGREEMENT = 1e-6


# Action probabilities of each player by sequence, float64 [S].
Strategy = tuple[np.ndarray, np.ndarray]


class ExactEvaluator:
    """Exact evaluation of strategies of one game.

    Attributes:
      curve_by: Tool that computes points of a curve, `OPENSPIEL` or `SPIEL_CR`.
    """

    def __init__(self, instance: GameInstance) -> None:
        self._tree = instance.tree
        self._fast = instance.fast
        self._refusal = ""
        count = len(instance.tree.histories)
        each = _HISTORY_PYTHON if instance.fast is not instance.game else _HISTORY
        need = footprint.tree_bytes(instance.tree) + each * count
        keys = [set(infosets.keys) for infosets in instance.tree.infosets]
        if count > _MOST_HISTORIES:
            self._refusal = f"{count:,} histories are too many for OpenSpiel's tool"
        elif need > (limit := memory.parse_limit(instance.memory_limit)):
            self._refusal = (
                f"OpenSpiel's tool would need about {memory.describe_bytes(need)}, and "
                f"{memory.describe_limit(instance.memory_limit, limit)}"
            )
        elif keys[0] & keys[1]:
            self._refusal = (
                "both players have an information-state string in common, which "
                "OpenSpiel's table cannot hold twice"
            )
        else:
            try:
                count += instance.tree.impossible.histories
            except (GameTooLargeError, InvalidGameError) as error:
                self._refusal = str(error)
        quick = count <= _QUICK_HISTORIES and not self._refusal
        self.curve_by = OPENSPIEL if quick else SPIEL_CR
        self._scale = max(1.0, float(np.abs(instance.tree.histories.utility).max()))

    def curve_point(self, strategy: Strategy) -> float:
        """Compute NashConv at a point of a curve."""
        strategy = self._checked(strategy)
        if self.curve_by == OPENSPIEL:
            return float(pyspiel.nash_conv(self._fast, self._table(strategy)))
        return self._by_spiel_cr(strategy)[0]

    def final(self, strategy: Strategy) -> Evaluation:
        """Compute NashConv and value, and check that both tools agree.

        Raises:
          ValueError: If the strategy is invalid, or the tools disagree, which would be
            a bug.
        """
        strategy = self._checked(strategy)
        nash_conv, value = self._by_spiel_cr(strategy)
        reason: dict[str, Any] = {"statistics": {"reason": self._refusal}}
        if self._refusal:
            return Evaluation(nash_conv, evaluator=SPIEL_CR, game_value=value, **reason)
        table = self._table(strategy)
        judged = float(pyspiel.nash_conv(self._fast, table))
        returns = pyspiel.expected_returns(
            self._fast.new_initial_state(), pyspiel.TabularPolicy(table), -1, True
        )
        pairs = (nash_conv, judged), (value, returns[0])
        for spiel_cr_value, openspiel_value in pairs:
            # The condition is written so that NaN fails.
            if not abs(spiel_cr_value - openspiel_value) <= _AGREEMENT * self._scale:
                raise ValueError(
                    f"OpenSpiel computes {openspiel_value}, but spiel_cr "
                    f"{spiel_cr_value}; one of them is wrong, please report it"
                )
        value = float(returns[0])
        return Evaluation(judged, evaluator=OPENSPIEL, game_value=value, **reason)

    def _checked(self, strategy: Strategy) -> Strategy:
        """Return normalised distributions, or raise ValueError."""
        tree, tolerance = self._tree, _SUM_TOLERANCE
        first, second = (
            behaviour_from_reach(
                tree.decisions[p], check_behaviour(tree, p, part, tolerance=tolerance)
            )
            for p, part in enumerate(strategy)
        )
        return first, second

    def _by_spiel_cr(self, strategy: Strategy) -> tuple[float, float]:
        form = self._tree.sequence_form
        reach = reach_of(form, strategy)
        value = float(nash_conv(form, reach))
        offset = payoff_offset(self._tree.game)
        return value, best_responses.expected_value(form, reach) + offset

    def _table(self, strategy: Strategy) -> dict[str, list[tuple[int, float]]]:
        table = {}
        for infosets, behaviour in zip(self._tree.infosets, strategy, strict=True):
            first = infosets.decisions.first_sequence - 1
            ends = (first + infosets.decisions.num_actions).tolist()
            probabilities = list(
                zip(infosets.actions.tolist(), behaviour[1:].tolist(), strict=True)
            )
            for key, begin, end in zip(infosets.keys, first, ends, strict=True):
                table[key] = probabilities[begin:end]
        # OpenSpiel's tools also query infosets below outcomes of probability zero.
        for key, state in self._tree.impossible.states.items():
            legal = state.legal_actions()
            table.setdefault(key, [(action, 1 / len(legal)) for action in legal])
        return table
