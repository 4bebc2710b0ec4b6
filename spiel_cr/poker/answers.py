"""What each hand does at a public node of hold'em, and what it is worth there."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.matrix_operators import make_operator
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies.best_responses import action_values
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.public_node_names import find_node, names_at, node_probabilities


class HandAnswers(NamedTuple):
    """The hands of the player who acts at a public node; H signals, A actions.

    Hands that differ only by suits that are alike are one signal, named by one of them.

    Attributes:
      path: names of the players' actions that lead there.
      player: who acts.
      round: from 0.
      actions: names.
      names: for each signal the hand and, after a bar, the board.
      combos: int64 [H], hands that each signal stands for.
      weight: float64 [H], of a hand in the range: as given, times how often the
        player gets here with it.
      likelihood: float64 [H], the probability to be here with the signal.
      equity: float64 [H], the share of showdowns won, ties half, against the opponent's
        range here; NaN where the opponent never gets here.
      ev: float64 [H], what the player wins on average from here on, in net chips since
        the game's start; likewise.
      played: float64 [H, A], the strategy.
      action_ev: float64 [H, A], `ev` of taking each action.
    """

    path: tuple[str, ...]
    player: int
    round: int
    actions: tuple[str, ...]
    names: tuple[str, ...]
    combos: np.ndarray
    weight: np.ndarray
    likelihood: np.ndarray
    equity: np.ndarray
    ev: np.ndarray
    played: np.ndarray
    action_ev: np.ndarray

    def mean(self, values: np.ndarray) -> np.ndarray:
        """The mean of [H, ...] over the range here; NaN if nobody gets here."""
        with np.errstate(invalid="ignore"):
            share = self.likelihood / self.likelihood.sum()
        return np.tensordot(share, np.where(np.isnan(values), 0, values), 1)

    def rows(self) -> list[dict[str, Any]]:
        """A row for each signal; None where a number is unknown."""
        numbers = np.stack([self.weight, self.equity, self.ev], axis=1).tolist()
        rows = []
        for h, name in enumerate(self.names):
            hand, _, board = name.partition(" | ")
            row = {"hand": hand, "board": board, "combos": int(self.combos[h])}
            for key, number in zip(("weight", "equity", "ev"), numbers[h], strict=True):
                row[key] = json_number(number)
            values = [json_number(value) for value in self.action_ev[h]]
            played = self.played[h].tolist()
            rows.append({**row, "probabilities": played, "action_evs": values})
        return rows


def json_number(value: Any) -> float | None:
    """A number for JSON; None for NaN."""
    return None if np.isnan(value) else float(value)


def answers(
    policy: FormPolicy, node: str = "", *, form: SequenceForm | None = None
) -> HandAnswers:
    """What each hand does at a public node, and what it is worth against the opponent.

    Args:
      policy: of a spot, or of another hold'em game solved by signals.
      node: names or numbers of the players' actions that lead there, such as
        "check bet-100"; empty: the root.
      form: the game in sequence form, if it is laid out already.

    Raises:
      ValueError: there is no such node, or the game's signals are no hands of cards.
    """
    signals = policy.form
    number, path = find_node(policy, node)
    betting = signals.betting
    player, round = int(betting.player[number]), int(betting.round[number])
    strategy_at = functools.partial(node_probabilities, policy)
    reach = [signals.reach_at(p, number, strategy_at) for p in range(2)]
    seen, margin = _pairs_and_margins(signals, player, round, reach[1 - player])
    form = form or signals.sequence_form
    other = 1 - player
    other_reach = reach_from_behaviour(form.decisions[other], policy.behaviour[other])
    actions, values = action_values(form, player, other_reach, policy.behaviour[player])
    decisions = policy.form.public_decisions[player]
    j = decisions.place(number)
    values = values[decisions.first_infoset[j] : decisions.first_infoset[j + 1]]
    with np.errstate(invalid="ignore", divide="ignore"):
        equity = np.where(seen > 0, (1 + margin / seen) / 2, np.nan)
        ev = np.where(seen > 0, values / seen, np.nan)
        action_ev = (
            decisions.block(actions, number) / np.where(seen > 0, seen, np.nan)[:, None]
        )
    reader: Any = signals.reader
    return HandAnswers(
        path,
        player,
        round,
        tuple(names_at(signals, number).values()),
        tuple(reader.name(player, round, s) for s in range(len(seen))),
        reader.combos(player, round),
        reader.range_weights(player, round) * reach[player],
        seen * reach[player],
        equity,
        ev,
        node_probabilities(policy, number).astype(np.float64),
        action_ev,
    )


def _pairs_and_margins(
    signals: PublicTreeGame, player: int, round: int, other_reach: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """How likely each signal meets the opponent, and wins the showdown less it loses.

    Args:
      signals: the game.
      player: whose signals.
      round: of them.
      other_reach: float64 [H'], the opponent's.

    Returns:
      float64 [H] each.
    """
    matrix = None
    if hasattr(signals.reader, "range_weights"):
        later = [
            matrix
            for matrix in signals.payoff_matrices
            if isinstance(matrix, HandMatrix) and matrix.round >= round
        ]
        # That of the next showdown: cards to come count.
        showdowns = (k for k in later if k.showdown)
        matrix = min(showdowns, key=lambda k: k.round, default=None)
    if matrix is None:
        raise ValueError(
            f"{signals.game}: its signals are no hands of cards, so they have no "
            f"equity; give a policy of a spot or another hold'em game"
        )
    behind = [signals.ancestors(p, matrix.round, round) for p in range(2)]
    sums = []
    for showdown in (False, True):
        product = make_operator(dataclasses.replace(matrix, showdown=showdown), player)
        with jax.enable_x64(True):
            reach = jnp.asarray(other_reach[behind[1 - player]])[None]
            values = np.asarray(product.apply(reach))[0]
        # Who folds loses: as the payoff of a fold, it is player 1's loss.
        sign = 1 if showdown or player == 0 else -1
        size = signals.num_private_states(player)[round]
        sums.append(sign * np.bincount(behind[player], values, minlength=size))
    return sums[0], sums[1]
