"""Local best response, a lookahead of one action with exact beliefs.

Lisý and Bowling 2017, "Equilibrium approximation quality of current no-limit poker
bots". At each decision, `lbr` and `LBRBot` compare the values of the player's actions.
After an action, the opponent answers once by its policy, and both players then follow a
default policy to the end: check and call ("call"), raise if possible ("raise"), or
random actions ("uniform"). The histories are weighted by the exact belief, given chance
and the opponent's policy. The result is a strategy, so its value is a lower bound of
the best-response value.

Deviations from the paper: In the paper, the opponent answers a raise by a fold or a
call (raises count as calls), and the player expects check and call after its own call.
Here the opponent's answer is any action at its first decision after the player's
action, if it acts before the player does; chance may act in between. All legal actions
are compared, not only some bet sizes. The other default policies are additions for
games that are not poker.
"""

from collections.abc import Callable

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_choice, check_iterations
from spiel_cr.common.messages import progress_bar
from spiel_cr.evaluation.responses.state_responder import StateResponder
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.game_checks import player_return
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.simulation import keys
from spiel_cr.games.simulation.boards import BetTree, BoardRules, Group
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players.fixed_policies import FixedPolicy, NotPokerError
from spiel_cr.policies import conversions
from spiel_cr.policies.beliefs import tree_posterior
from spiel_cr.policies.beliefs.state_posterior import StatePosterior
from spiel_cr.policies.best_responses import first_actions
from spiel_cr.policies.queries import query
from spiel_cr.policies.rollouts import (
    Answers,
    generator_at,
    play_on,
    uniform_numbers,
)
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy

LEAVES = ("call", "raise", "uniform")

# Values that differ by less are equal up to rounding; relative to the largest utility
# of which they are computed. The bounds that a game declares may be much larger.
_ROUNDING = 1e-12


def lbr(
    tree: GameTree,
    player: int,
    opponent_behaviour: np.ndarray,
    *,
    leaf: str = "call",
) -> np.ndarray:
    """Compute the local best response on a game tree.

    At infosets that the opponent's policy cannot reach, the belief is that of chance
    and a uniform opponent.

    Args:
      tree: The game tree.
      player: The responder, 0 or 1.
      opponent_behaviour: The opponent's action probabilities, float64 [S'].
      leaf: Default policy: "call" or "raise" (poker only), or "uniform".

    Returns:
      The responder's action probabilities, 0 or 1, float64 [S]; the first of equally
      good actions is played.

    Raises:
      ValueError: If the player, the leaf or the strategy is invalid, or if the leaf is
        "call" or "raise" and the game is not poker.
    """
    check_choice(leaf, "leaf", LEAVES)
    tree_posterior.check_opponent(tree, player, opponent_behaviour)
    histories, decisions = tree.histories, tree.infosets[player].decisions
    values = _answered_values(tree, player, opponent_behaviour, leaf)
    belief = tree_posterior.beliefs(tree, player, opponent_behaviour)
    below = 1 + np.flatnonzero(histories.player[histories.parent[1:]] == player)
    expected = np.bincount(
        histories.sequence[player][below],
        belief[histories.parent[below]] * values[below],
        minlength=decisions.num_sequences,
    )
    return _best(decisions, expected, _ROUNDING * np.abs(histories.utility).max())


class LBRBot(StateResponder):
    """A bot that plays the local best response on states, without a game tree.

    Expected values are means of rollouts. Each samples a history from the belief, and
    plays it to the end once after each action.

    Attributes:
      belief: The belief over histories.
      beliefs: Statistics of the beliefs so far.
      simulations: Number of simulations so far; a rollout has one for each action.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        player: int,
        opponent: openspiel_policy.Policy,
        *,
        leaf: str = "call",
        rollouts: int = 1000,
        seed: int = 0,
        belief: StatePosterior | None = None,
    ) -> None:
        """Initialise without queries.

        Args:
          game: A sequential game.
          player: The responder, 0 or 1.
          opponent: The opponent's policy, which must depend on its information states
            only.
          leaf: Default policy: "call" or "raise" (poker only), or "uniform".
          rollouts: Number of rollouts per decision.
          seed: Seed for all random choices.
          belief: Belief over histories; by default a `StatePosterior`.

        Raises:
          ValueError: If an argument is invalid, or the leaf is "call" or "raise" and
            the game is not poker.
        """
        check_choice(leaf, "leaf", LEAVES)
        super().__init__(game, player, opponent, seed=seed, belief=belief)
        self._rollouts = check_iterations(rollouts, name="rollouts")
        # Largest absolute utility in rollouts of the last decision.
        self._largest = 0.0
        default = _default_policy(game, leaf)
        self._defaults = {p: Answers(default, p) for p in (0, 1)}

    def best_action(self, state: pyspiel.State) -> int:
        """Return the first of equally good actions; a random one without a belief."""
        values = self.action_values(state)
        if not self.belief.states:
            random = generator_at(self._seed, state, self._player)
            return int(random.choice(state.legal_actions()))
        best = int(np.argmax(values >= values.max() - _ROUNDING * self._largest))
        return int(state.legal_actions()[best])

    def action_values(self, state: pyspiel.State) -> np.ndarray:
        """Estimate the values of the legal actions, in the responder's utility.

        Args:
          state: A state at which the player acts; only its information is used.

        Returns:
          Means over the belief, float64 [A]; 0 if the belief has no history.

        Raises:
          ValueError: If the state belongs to an unconverted simultaneous game.
        """
        random = self._observe(state)
        self._largest = 0.0
        legal = state.legal_actions()
        values = np.zeros(len(legal))
        if not self.belief.states:
            return values
        number = uniform_numbers(random)
        for _ in range(self._rollouts):
            history = self.belief.sample(random)
            for place, action in enumerate(legal):
                values[place] += self._roll_out(history.child(action), number)
        self.simulations += self._rollouts * len(legal)
        return values / self._rollouts

    def _roll_out(self, state: pyspiel.State, number: Callable[[], float]) -> float:
        """Play a state to the end, and return the responder's utility."""
        if play_on(state, {}, number) == 1 - self._player:
            state.apply_action(self._opponent.draw(state, number()))
        play_on(state, self._defaults, number)
        return self._return(state)

    def _return(self, state: pyspiel.State) -> float:
        """Return the responder's utility at a terminal node, and store the largest."""
        utility = player_return(state, self._player)
        self._largest = max(self._largest, abs(utility))
        return utility


def _default_policy(game: pyspiel.Game, leaf: str) -> openspiel_policy.Policy:
    if leaf == "uniform":
        return openspiel_policy.UniformRandomPolicy(game)
    try:
        return FixedPolicy(game, f"always_{leaf}")
    except NotPokerError as error:
        raise ValueError(f"leaf={leaf!r}: {error}; give leaf='uniform'") from error


def _answered_values(
    tree: GameTree, player: int, opponent_behaviour: np.ndarray, leaf: str
) -> np.ndarray:
    """Return the values if default play follows the next answer, float64 [N]."""
    histories, other = tree.histories, 1 - player
    # Uniform play is the default of `history_values`.
    uniform = leaf == "uniform"
    default = None if uniform else query(tree, _default_policy(tree.game, leaf))
    values = conversions.history_values(tree, default)
    if player == 1:
        values = -values
    answered = values.copy()
    mover = histories.player
    answered[(mover == other) | (mover == CHANCE)] = 0.0
    step = tree_posterior.transitions(tree, player, opponent_behaviour)
    starts = histories.level_start
    for begin, end in reversed(list(zip(starts[1:-1], starts[2:], strict=True))):
        level = np.arange(begin, end)
        for who, below in ((other, values), (CHANCE, answered)):
            moved = level[mover[histories.parent[level]] == who]
            np.add.at(answered, histories.parent[moved], step[moved] * below[moved])
    return answered


def _best(decisions: Decisions, value: np.ndarray, tolerance: float) -> np.ndarray:
    """Return float64 [S], 1 at each infoset's first best action by value [S]."""
    highest = np.maximum.reduceat(value[1:], decisions.first_sequence - 1)
    good = value[1:] >= highest[decisions.owner[1:]] - tolerance
    return first_actions(decisions, good)


# Number of boards for comparing hands: before the first card is dealt, and later.
_AT_FIRST, _LATER = 500, 50


class BoardResponse:
    """Local best response to a strategy of a bucketed betting game."""

    def __init__(
        self, rules: BoardRules, strategy: TableStrategy, player: int, *, seed: int
    ) -> None:
        """Look up the complete strategy.

        Args:
          rules: Rules of the game, which make the keys of the strategy.
          strategy: The opponent's strategy, which is uniform if it has no row.
          player: The responder.
          seed: Seed of all boards.
        """
        self._rules, self._player, self._seed = rules, player, seed
        self._tree = BetTree(rules)
        self._opponent_strategy = {
            index: _strategy_at(strategy, group)
            for index, group in enumerate(self._tree.groups)
            if group.player != player
        }
        # The group of each of the opponent's decisions, and its place there.
        self._where = {
            int(node): (index, row)
            for index in self._opponent_strategy
            for row, node in enumerate(self._tree.groups[index].nodes)
        }
        self._before_cards = self._wins(np.zeros(0, np.int64), 0)

    def values(self, boards: int) -> np.ndarray:
        """Return the responder's mean utility on sampled boards, float64 [boards]."""
        description = f"boards, player {self._player}"
        numbers = progress_bar(range(boards), desc=description)
        return np.array([self._value(number) for number in numbers])

    def _folds(self, node: int) -> bool:
        bets = self._tree.bets
        return bets.player[node] == TERMINAL and not bets.showdown[node]

    def _called(self, node: int) -> int:
        """Return the last node of checks and calls after a node."""
        while len(below := self._tree.children[node]):
            node = next(int(child) for child in below if not self._folds(child))
        return node

    def _wins(self, first: np.ndarray, number: int) -> np.ndarray:
        """Return win minus loss probabilities after some cards, float32 [H, H]."""
        size = self._rules.sizes[-1]
        draws = 1 if len(first) == size else _LATER if len(first) else _AT_FIRST
        random = np.random.default_rng([self._seed, 1, self._player, number])
        total = np.zeros((len(self._rules.held),) * 2, np.float32)
        left = np.zeros((draws, len(total)), np.float32)
        for draw in range(draws):
            board = self._rules.draw_board(random, first)
            total += self._rules.beats(board)
            left[draw] = self._rules.buckets(board, len(self._rules.sizes) - 1)[1]
        return total / np.maximum(left.T @ left, 1)

    def _value(self, number: int) -> float:
        """Return the mean utility on one board."""
        rules, tree, player = self._rules, self._tree, self._player
        random = np.random.default_rng([self._seed, 0, number])
        board = rules.draw_board(random)
        seen = [rules.buckets(board[:size], at) for at, size in enumerate(rules.sizes)]
        wins = [
            self._wins(board[:size], number) if size else self._before_cards
            for size in rules.sizes
        ]
        reach = np.ones((2, len(tree.place), len(rules.held)), np.float32)
        for index, group in enumerate(tree.groups):
            labels, left = seen[group.round]
            before = reach[group.player, tree.own[group.player, group.nodes]]
            after = reach[group.player, group.below].reshape(-1, *before.shape)
            if group.player != player:
                after[:] = self._opponent_strategy[index][:, :, labels] * before
                continue
            other = reach[1 - player, tree.own[1 - player, group.nodes]] * left
            best = self._action_values(group, other, labels, wins[group.round]).argmax(
                0
            )
            after[:] = (best == np.arange(len(after))[:, None, None]) * before
        hands = np.flatnonzero(seen[-1][1])
        held, beats = rules.held[hands], rules.beats(board)[np.ix_(hands, hands)]
        value = np.zeros((len(tree.place), len(hands)), np.float32)
        tree.end_values(player, reach[1 - player][:, hands], held, beats, value)
        ends = np.concatenate([tree.folds, tree.shown])
        player_reach = reach[player, tree.own[player, ends]][:, hands]
        total = np.einsum(
            "eh,eh->", player_reach, value[tree.place[ends]], dtype=np.float64
        )
        pairs = len(hands) ** 2 - ((held @ held.T) > 0).sum()
        return float(total / pairs)

    def _action_values(
        self, group: Group, other: np.ndarray, labels: np.ndarray, wins: np.ndarray
    ) -> np.ndarray:
        """Return the estimated values of a group's actions, float32 [A, n, H].

        Args:
          group: A group of the responder.
          other: The opponent's reach at the group's nodes, float32 [n, H].
          labels: The opponent's buckets, int64 [H].
          wins: Win minus loss probabilities at the nodes, float32 [H, H].
        """
        stake = np.abs(self._tree.bets.stake)
        result = np.empty((group.shape[0], *other.shape), np.float32)
        for at, node in enumerate(group.nodes):
            for values, child in zip(
                result[:, at], self._tree.children[node], strict=True
            ):
                if self._folds(child):
                    values[:] = -stake[child] * self._disjoint_sums(other[at])
                    continue
                stays = other[at]
                values[:] = 0
                below = self._tree.children[child]
                if len(below) and self._folds(below[0]):
                    index, row = self._where[child]
                    gone = self._opponent_strategy[index][0, row, labels] * stays
                    values += stake[below[0]] * self._disjoint_sums(gone)
                    stays = stays - gone
                values += stake[self._called(child)] * (wins @ stays)
        return result

    def _disjoint_sums(self, reach: np.ndarray) -> np.ndarray:
        """Return sums of reach [H] over hands that share no card, float32 [H]."""
        held = self._rules.held
        disjoint: np.ndarray = reach.sum() - held @ (reach @ held)
        return disjoint + (held[0].sum() - 1) * reach


def _strategy_at(strategy: TableStrategy, group: Group) -> np.ndarray:
    """Return a strategy at the decisions of a group, float32 [A, n, B]."""
    width, nodes, buckets = group.shape
    bucket = np.tile(np.arange(buckets), nodes)
    rows = np.stack([np.repeat(group.nodes, buckets), bucket], axis=1)
    row = strategy.find(keys.of_rows(rows, group.player))
    result = strategy.spread(row, np.ones((len(row), width), bool))
    result[row < 0] = 1 / width
    return result.T.reshape(group.shape).astype(np.float32)
