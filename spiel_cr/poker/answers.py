"""Strategy, equity and expected value of each hand at a public node of hold'em."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.compilation_cache import caching
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.matrix_operators import make_operator
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies.best_responses import action_values
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.public_node_names import find_node, names_at, node_probabilities


class HandAnswers(NamedTuple):
    """The hands of the player who acts at a public node; H private states, A actions.

    Hands that are equal up to suits are one private state, which is named by one of
    them.

    Attributes:
      path: Names of the players' actions that lead to the node.
      player: Player who acts at the node.
      round: Round of the node, from 0.
      actions: Names of the legal actions.
      names: Name of each private state: the hand and, after a bar, the board.
      combos: Number of hands that each private state represents, int64 [H].
      weight: Weight of a hand in the range, float64 [H]: the initial weight times the
        probability of the player's actions with the hand.
      likelihood: Probability of reaching the node with the private state, float64 [H].
      equity: Share of showdowns won, with ties counted half, against the opponent's
        range at the node, float64 [H]; NaN if the opponent never reaches the node.
      ev: The player's expected utility from the node on, in net chips since the start
        of the game, float64 [H]; NaN if the opponent never reaches the node.
      played: Probabilities of the actions, float64 [H, A].
      action_ev: Expected utility of each action, as `ev`, float64 [H, A].
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
        """Return the mean of [H, ...] over the range; NaN if it is never reached."""
        with np.errstate(invalid="ignore"):
            share = self.likelihood / self.likelihood.sum()
        return np.tensordot(share, np.where(np.isnan(values), 0, values), 1)

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per private state for JSON; unknown numbers are None."""
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
    """Return a number for JSON: a float, or None for NaN."""
    return None if np.isnan(value) else float(value)


def answers(
    policy: FormPolicy, node: str = "", *, form: SequenceForm | None = None
) -> HandAnswers:
    """Compute strategy, equity and expected value of each hand at a public node.

    Args:
      policy: Policy of a spot, or of another hold'em game in public-tree form.
      node: Names or numbers of the players' actions that lead to the node, such as
        "check bet-100"; empty: the root.
      form: Game in sequence form, if it is already built.

    Raises:
      ValueError: If the node does not exist, or the private states of the game are not
        hands of cards.
    """
    game = policy.form
    number, path = find_node(policy, node)
    betting = game.betting
    player, round = int(betting.player[number]), int(betting.round[number])
    strategy_at = functools.partial(node_probabilities, policy)
    reach = [game.reach_at(p, number, strategy_at) for p in range(2)]
    seen, margin = _pairs_and_margins(game, player, round, reach[1 - player])
    form = form or game.sequence_form
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
    reader: Any = game.reader
    return HandAnswers(
        path,
        player,
        round,
        tuple(names_at(game, number).values()),
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
    game: PublicTreeGame, player: int, round: int, other_reach: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the probabilities of meeting the opponent, and the margins of showdowns.

    Args:
      game: Game in public-tree form.
      player: Player of the private states.
      round: Round of the private states.
      other_reach: Reach of the opponent's private states, float64 [H'].

    Returns:
      For each private state, float64 [H] each: the probability that it and the opponent
      are both dealt and reach the node, and that of winning the showdown minus that of
      losing.
    """
    matrix = None
    if hasattr(game.reader, "range_weights"):
        later = [
            matrix
            for matrix in game.payoff_matrices
            if isinstance(matrix, HandMatrix) and matrix.round >= round
        ]
        # The matrix of the next showdown; it includes the cards to come.
        showdowns = (k for k in later if k.showdown)
        matrix = min(showdowns, key=lambda k: k.round, default=None)
    if matrix is None:
        raise ValueError(
            f"{game.game}: its private states are not hands of cards, so they "
            f"have no equity; use a policy of a spot or another hold'em game"
        )
    behind = [game.ancestors(p, matrix.round, round) for p in range(2)]
    sums = []
    for showdown in (False, True):
        product = make_operator(dataclasses.replace(matrix, showdown=showdown), player)
        with caching(), jax.enable_x64(True):
            reach = jnp.asarray(other_reach[behind[1 - player]])[None]
            values = np.asarray(product.apply(reach))[0]
        # The payoff of a fold is signed as player 1's loss.
        sign = 1 if showdown or player == 0 else -1
        size = game.num_private_states(player)[round]
        sums.append(sign * np.bincount(behind[player], values, minlength=size))
    return sums[0], sums[1]
