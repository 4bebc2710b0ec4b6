"""Strategy, equity and expected value of each hand at a public node of hold'em."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.checks import check_choice
from spiel_cr.common.compilation_cache import caching
from spiel_cr.games.public_tree.matrix_operators import MatrixOperator, make_operator
from spiel_cr.games.public_tree.payoff_matrices import HandMatrix
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.poker.spot import NAME
from spiel_cr.policies.best_responses import action_values
from spiel_cr.policies.conversions import reach_from_behaviour
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.public_node_names import find_node, names_at, node_probabilities
from spiel_cr.solvers.cfr.board_values import with_values


class HandAnswers(NamedTuple):
    """The hands of the player that acts at a public node; H private states, A actions.

    Hands that are equal up to suits are one private state, which is named by one of
    them.

    Attributes:
      path: Names of the players' actions that lead to the node.
      player: Player that acts at the node.
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

    def by_hand(
        self,
        hand: np.ndarray,
        orbits: np.ndarray,
        names: tuple[str, ...],
        combos: np.ndarray,
    ) -> "HandAnswers":
        """Return the means over the cards that have been dealt since the first street.

        Args:
          hand: Private state of the first street behind each private state, int [H].
          orbits: Number of boards that the board of each private state represents.
          names: Name of each of the H' private states of the first street.
          combos: Number of hands of each private state of the first street, int [H'].

        Returns:
          Numbers of each hand of the first street, weighted by the probability of
          reaching the node with it on each board; NaN if it never does.
        """
        orbits, count = orbits * self.combos, len(names)
        with np.errstate(invalid="ignore", divide="ignore"):

            def mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
                weighted = np.where(np.isnan(values), 0, values).T * weights
                sums = np.apply_along_axis(
                    lambda row: np.bincount(hand, row, count), -1, weighted
                )
                means: np.ndarray = (sums / np.bincount(hand, weights, count)).T
                return means

            return self._replace(
                names=names,
                combos=combos,
                weight=mean(self.weight, orbits),
                likelihood=np.bincount(hand, self.likelihood, count),
                equity=mean(self.equity, self.likelihood),
                ev=mean(self.ev, self.likelihood),
                played=mean(self.played, self.likelihood),
                action_ev=mean(self.action_ev, self.likelihood),
            )

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
    policy: FormPolicy,
    node: str = "",
    *,
    form: SequenceForm | None = None,
    board: str = "",
) -> HandAnswers:
    """Compute strategy, equity and expected value of each hand at a public node.

    Args:
      policy: Policy of a spot, or of another hold'em game in public-tree form.
      node: Names or numbers of the players' actions that lead to the node, such as
        "check bet-100"; empty: the root.
      form: Game in sequence form, if it is already built.
      board: All public cards at the node, such as "5c9dJs2h8d", to get the hands on
        this board only; empty: the hands on all boards.

    Raises:
      ValueError: If the node or the board does not exist, or the private states of the
        game are not hands of cards.
    """
    hands = NodeValues(policy, form).at(node)
    if not board:
        return hands
    reader: Any = policy.form.reader
    number = reader.states_on(hands.player, hands.round, board)
    states, hand = np.unique(number, return_index=True)
    states, hand = states[states >= 0], hand[states >= 0]
    shown = f" | {''.join(board.split())}"
    names = tuple(reader.hand_name(h) + shown for h in hand.tolist())
    per_state = [f for f, x in hands._asdict().items() if isinstance(x, np.ndarray)]
    parts = {name: getattr(hands, name)[states] for name in per_state}
    return hands._replace(names=names, **parts)


def ranges(
    policy: FormPolicy, node: str = "", *, board: str = "", notation: str = "pio"
) -> tuple[str, str]:
    """Return both players' ranges at a public node, as text for other programs.

    Args:
      policy: Policy of a spot in public-tree form.
      node: Actions that lead to the node, as for `answers`.
      board: All public cards at the node; necessary if cards have been dealt since the
        start of the spot.
      notation: "pio": weights as in PioSOLVER ("AA,KK:0.5"); "gto+": as in GTO+
        ("AA,[50]KK[/50]"). `spot` reads both.

    Raises:
      ValueError: If the node or the board does not exist, or the game is not a spot.
    """
    check_choice(notation, "notation", ("pio", "gto+"))
    game, (number, _) = policy.form, find_node(policy, node)
    reader: Any = game.reader
    if game.game.get_type().short_name != NAME:
        raise ValueError(f"{game.game}: not a spot; use a policy of poker.spot(...)")
    round = int(game.betting.round[number])
    texts = []
    for player in range(2):
        reach = game.reach_at(
            player, number, functools.partial(node_probabilities, policy)
        )
        weights = reader.range_weights(player, round) * reach
        texts.append(reader.range_text(player, round, weights, board, notation))
    return texts[0], texts[1]


class NodeValues:
    """Values of a policy at public nodes, computed once for all nodes of a player."""

    def __init__(self, policy: FormPolicy, form: SequenceForm | None = None) -> None:
        """Use a policy of a hold'em game; `form` is as in `answers`."""
        self._policy, self._game = policy, policy.form
        self._form = with_values(
            self._game, form or self._game.sequence_form, policy.behaviour[0].dtype
        )
        self._values = functools.cache(self._player_values)
        # Values on boards, by player and first sequence of a decision.
        self._on_boards: dict[tuple[int, int], np.ndarray] = {}
        self._names = functools.cache(self._state_names)
        # Two operators, of folds and showdowns: they may have hundreds of megabytes.
        self._operator = functools.lru_cache(maxsize=2)(self._make_operator)

    def at(self, node: str) -> HandAnswers:
        """Compute `answers` at a public node."""
        game, policy = self._game, self._policy
        number, path = find_node(policy, node)
        betting = game.betting
        player, round = int(betting.player[number]), int(betting.round[number])
        strategy_at = functools.partial(node_probabilities, policy)
        reach = [game.reach_at(p, number, strategy_at) for p in range(2)]
        seen, margin = self._pairs_and_margins(player, round, reach[1 - player])
        played = node_probabilities(policy, number).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            equity = np.where(seen > 0, (1 + margin / seen) / 2, np.nan)
            values = self._action_values(player, number)
            action_ev = values / np.where(seen > 0, seen, np.nan)[:, None]
        reader: Any = game.reader
        return HandAnswers(
            path,
            player,
            round,
            tuple(names_at(game, number).values()),
            self._names(player, round),
            reader.combos(player, round),
            reader.range_weights(player, round) * reach[player],
            seen * reach[player],
            equity,
            (played * action_ev).sum(axis=1),
            played,
            action_ev,
        )

    def _action_values(self, player: int, node: int) -> np.ndarray:
        """Return counterfactual values of a player's actions at a node, [H, A]."""
        decisions, boards = self._game.public_decisions[player], self._form.evaluator
        if boards is None:
            values: np.ndarray = decisions.block(self._values(player), node)
            return values
        first = int(decisions.first_sequence[decisions.place(node)])
        if (player, first) not in self._on_boards:
            behaviour: Any = self._policy.behaviour
            found = boards.action_values(behaviour, player, first)
            self._on_boards |= {(player, first): part for first, part in found.items()}
        return self._on_boards[player, first]

    def _player_values(self, player: int) -> np.ndarray:
        """Return counterfactual values of a player's actions; see `action_values`."""
        form, behaviour = self._form, self._policy.behaviour
        other = 1 - player
        reach = reach_from_behaviour(form.decisions[other], behaviour[other])
        return action_values(form, player, reach, behaviour[player])[0]

    def _state_names(self, player: int, round: int) -> tuple[str, ...]:
        """Return the names of all private states of a player in a round."""
        count = self._game.num_private_states(player)[round]
        return tuple(self._game.reader.name(player, round, s) for s in range(count))

    def _pairs_and_margins(
        self, player: int, round: int, other_reach: np.ndarray
    ) -> list[np.ndarray]:
        """Return the probabilities of meeting the opponent, and showdown margins.

        Args:
          player: Player of the private states.
          round: Round of the private states.
          other_reach: Reach of the opponent's private states, float64 [H'].

        Returns:
          For each private state, float64 [H] each: the probability that it and the
          opponent are both dealt and reach the node, and that of winning the showdown
          minus that of losing.
        """
        game, sums, matrix = self._game, [], self._next_showdown(round)
        behind = [game.ancestors(p, matrix.round, round) for p in range(2)]
        reach = other_reach[behind[1 - player]]
        for showdown in (False, True):
            values = self._product(matrix, player, reach, showdown)
            size = game.num_private_states(player)[round]
            sums.append(np.bincount(behind[player], values, minlength=size))
        return sums

    def _product(
        self, matrix: HandMatrix, player: int, reach: np.ndarray, showdown: bool
    ) -> np.ndarray:
        """Return the sums of `_pairs_and_margins` by private state of the showdown."""
        if (boards := self._form.evaluator) is not None:
            return boards.matrix_values(player, matrix.round, reach, showdown=showdown)
        operator = self._operator(matrix.round, player, showdown)
        with caching(), jax.enable_x64(True):
            values = np.asarray(operator.apply(jnp.asarray(reach)[None]))[0]
        # The payoff of a fold is signed as player 1's loss.
        return values if showdown or player == 0 else -values

    def _make_operator(self, round: int, player: int, showdown: bool) -> MatrixOperator:
        """Return the operator of the next showdown from a round on, or of folds."""
        matrix = dataclasses.replace(self._next_showdown(round), showdown=showdown)
        return make_operator(matrix, player)

    def _next_showdown(self, round: int) -> HandMatrix:
        """Return the matrix of the next showdown, which includes the cards to come."""
        hands = (k for k in self._game.payoff_matrices if isinstance(k, HandMatrix))
        matrices = [k for k in hands if k.showdown and k.round >= round]
        if not matrices:
            raise ValueError(
                f"{self._game.game}: its private states are not hands of cards, so "
                f"they have no equity; use a policy of a spot or another hold'em game"
            )
        return min(matrices, key=lambda k: k.round)
