"""Conversions between strategy arrays and OpenSpiel policies; values of strategies.

A behaviour strategy of one player is a float64 [S] array by logical sequence. It holds
the probability of the action that ends the sequence, and 1 for the empty sequence. Its
sequence form is the player's reach: the product of these probabilities from the root.
"""

import abc
import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.games.game_form import GameForm
from spiel_cr.games.histories import states_at
from spiel_cr.games.public_tree.public_nodes import PublicDecisions
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import GameTree, Infosets
from spiel_cr.policies.turns import turn_based_state

# Action probabilities by sequence, float64 [S] of each player.
Behaviours: TypeAlias = tuple[np.ndarray, np.ndarray]
# Largest deviation from 1 of the sum of probabilities at a decision, in policies of
# callers. It suffices for float32.
SUM_TOLERANCE = 1e-5
# Types of probabilities that are stored by sequence.
DTYPES = ("float32", "float64")
# Number of infosets that are checked at a time.
_CHUNK = 1 << 20
# Kinds of numpy's types that are numbers, and accepted as probabilities.
_NUMBERS = "biuf"


class StatePolicy(openspiel_policy.Policy, abc.ABC):
    """A policy of both players that is queried state by state, and is not a table.

    OpenSpiel's tools, and all functions that accept a policy, support it.
    """

    def __init__(self, game: pyspiel.Game) -> None:
        super().__init__(game, [0, 1])

    def action_probabilities(
        self, state: pyspiel.State, player_id: int | None = None
    ) -> dict[int, float]:
        """Return the probabilities of all legal actions of the acting player.

        Args:
          state: A state at which a player acts, of the game or, if the game was
            converted to turns, of the simultaneous game.
          player_id: The acting player; required at simultaneous moves only.

        Raises:
          ValueError: If another player or no player acts, or the state belongs to
            another game.
        """
        state = sequential_state(self.game, state, player_id)
        return self.probabilities_at(state, check_acting(state, player_id))

    @abc.abstractmethod
    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return the probabilities at a state at which `player` acts."""


def sequential_state(
    game: pyspiel.Game, state: pyspiel.State, player_id: int | None
) -> pyspiel.State:
    """Return a state of a simultaneous game as one of its turn-based form.

    Args:
      game: The turn-based form.
      state: Any state; one that is not simultaneous is returned as it is.
      player_id: The player whose decision it is.

    Raises:
      ValueError: If the state is simultaneous and no player is given, or if `game` is
        not the turn-based form of the state's game.
    """
    if state.current_player() != pyspiel.PlayerId.SIMULTANEOUS:
        return state
    if player_id not in (0, 1):
        raise ValueError(
            f"player_id={player_id!r}: both players move after the actions "
            f"{state.history()}; give 0 or 1"
        )
    return turn_based_state(game, state, player_id)


def check_acting(state: pyspiel.State, player_id: int | None) -> int:
    """Return the acting player.

    Args:
      state: The state at which a policy is queried.
      player_id: The player that the caller expects to act; None for any player.

    Raises:
      ValueError: If another player or no player acts.
    """
    acts = int(state.current_player())
    if acts not in (0, 1) or player_id not in (None, acts):
        raise ValueError(
            f"player_id={player_id!r}: after the actions {state.history()} player "
            f"{acts} acts; query the acting player, at decisions only"
        )
    return acts


def uniform_behaviour(decisions: Decisions) -> np.ndarray:
    """Return equal probabilities at every infoset, float64 [S]."""
    probabilities = np.repeat(1.0 / decisions.num_actions, decisions.num_actions)
    return np.concatenate([np.ones(1), probabilities])


def pure_behaviour(decisions: Decisions, chosen: np.ndarray) -> np.ndarray:
    """Return 1 at chosen sequences, and uniform play without a choice, float64 [S].

    Args:
      decisions: The player's decision points.
      chosen: Whether an infoset's action is played, bool [S].
    """
    owner = decisions.owner[1:]
    is_pure = np.bincount(owner, chosen[1:], minlength=len(decisions)) > 0
    played = np.where(is_pure[owner], chosen[1:], uniform_behaviour(decisions)[1:])
    return np.append(1.0, played)


def reach_from_behaviour(decisions: Decisions, behaviour: np.ndarray) -> np.ndarray:
    """Return the player's reach, from float64 [S] probabilities, float64 [S].

    Several strategies are columns, float64 [S, R].
    """
    reach = np.ones(behaviour.shape)
    owner = decisions.owner
    for _, sequences in decisions.downwards():
        reach[sequences] = (
            reach[decisions.parent[owner[sequences]]] * behaviour[sequences]
        )
    return reach


def behaviour_from_reach(decisions: Decisions, reach: np.ndarray) -> np.ndarray:
    """Return probabilities in proportion to reach, float64 [S]; uniform where it is 0.

    Args:
      decisions: The player's decision points.
      reach: Reach of each sequence, or probabilities in any scale, float [S].
    """
    owner, played = decisions.owner[1:], reach[1:].astype(np.float64)
    total = np.bincount(owner, played, minlength=len(decisions))
    silent = ~(total > 0)
    if silent.any():
        played[silent[owner]] = 1.0
        total[silent] = decisions.num_actions[silent]
    return np.append(1.0, played / total[owner])


class TabularPolicy(openspiel_policy.TabularPolicy):
    """OpenSpiel's uniform table of a game tree, without a walk through its states.

    States are made when they are first needed.
    """

    def __init__(self, tree: GameTree) -> None:
        openspiel_policy.Policy.__init__(self, tree.game, [0, 1])
        self._tree, self.game_type = tree, tree.game.get_type()
        beyond = tree.impossible.states
        self.states_per_player = []
        for player, infosets in enumerate(tree.infosets):
            other = {k for k, s in beyond.items() if s.current_player() == player}
            self.states_per_player.append(sorted(other.union(infosets.keys)))
        keys = itertools.chain(*self.states_per_player)
        self.state_lookup = {key: row for row, key in enumerate(keys)}
        shape = len(self.state_lookup), tree.game.num_distinct_actions()
        self.legal_actions_mask = np.zeros(shape, np.int64)
        for infosets in tree.infosets:
            self.legal_actions_mask[self.rows(infosets), infosets.actions] = 1
        for key, state in beyond.items():
            mask = state.legal_actions_mask(state.current_player())
            self.legal_actions_mask[self.state_lookup[key]] = mask
        total = self.legal_actions_mask.sum(axis=1, keepdims=True)
        self.action_probability_array = self.legal_actions_mask / total

    def action_probabilities(
        self, state: pyspiel.State, player_id: int | None = None
    ) -> dict[int, float]:
        """Return the probabilities of the legal actions; see `StatePolicy`."""
        state = sequential_state(self.game, state, player_id)
        answer: dict[int, float] = super().action_probabilities(state, player_id)
        return answer

    def rows(self, infosets: Infosets) -> np.ndarray:
        """Return the row of each of a player's sequences, int64 [S - 1]."""
        rows = np.array([self.state_lookup[key] for key in infosets.keys], np.int64)
        return rows[infosets.decisions.owner[1:]]

    @functools.cached_property
    def states(self) -> list[pyspiel.State]:
        """A state of each row."""
        states = dict(self._tree.impossible.states)
        for infosets in self._tree.infosets:
            first = dict(states_at(self.game, self._tree.histories, infosets.history))
            states |= {key: first[i] for i, key in enumerate(infosets.keys)}
        return [states[key] for key in self.state_lookup]

    @functools.cached_property
    def state_in(self) -> np.ndarray | None:
        """Tensor of each row's state; None if the table has no states."""
        states = dict(zip(self.state_lookup, self.states, strict=True))
        table = openspiel_policy.TabularPolicy(self.game, states=states)
        return table.state_in if states else None


def tabular_policy(
    tree: GameTree, behaviour: Sequence[np.ndarray]
) -> openspiel_policy.TabularPolicy:
    """Return an OpenSpiel `TabularPolicy` over every infoset of the game.

    Game trees do not contain infosets below chance outcomes of probability zero, but
    OpenSpiel's tools query policies there. The policy is uniform at these infosets.

    Args:
      tree: The game tree.
      behaviour: Probability of each sequence's last action, float64 [S] of each player.

    Raises:
      GameTooLargeError: If more than a million histories are below such outcomes.
      ValueError: If both players have an infoset with the same information state
        string, so that a table by string cannot hold both.
    """
    clash = set(tree.infosets[0].keys) & set(tree.infosets[1].keys)
    if clash:
        raise ValueError(
            f"{tree.game}: both players have the information state {min(clash)!r}; a "
            f"TabularPolicy cannot hold two strategies for one string"
        )
    policy = TabularPolicy(tree)
    for infosets, probabilities in zip(tree.infosets, behaviour, strict=True):
        rows = policy.rows(infosets)
        policy.action_probability_array[rows, infosets.actions] = probabilities[1:]
    return policy


def check_behaviour(
    form: GameForm,
    player: int,
    behaviour: np.ndarray,
    *,
    tolerance: float = SUM_TOLERANCE,
    least: float | None = None,
) -> np.ndarray:
    """Check a player's strategy.

    Args:
      form: The represented game.
      player: The player, 0 or 1.
      behaviour: Numbers [S], probability of each sequence's last action.
      tolerance: Largest deviation from 1 of the sum at an infoset.
      least: Smallest value of a probability; by default `tolerance` below 0.

    Returns:
      The probabilities, float64 [S], without numbers below 0; unchanged if `least` is
      given.

    Raises:
      ValueError: If the strategy has another length or type; or if the probabilities at
        an infoset, which the message names, are negative or not finite, or do not sum
        to 1.
    """
    name, numbers = f"behaviour of player {player}", np.asarray(behaviour)
    # Only one of them is necessary; the second one takes more memory.
    public = getattr(form, "public_decisions", None)
    decisions = public[player] if public else form.decisions[player]
    count = decisions.num_sequences
    if numbers.shape != (count,) or numbers.dtype.kind not in _NUMBERS:
        raise ValueError(
            f"{name} has shape {numbers.shape} and dtype {numbers.dtype}; {form.game} "
            f"needs {count} numbers in this form"
        )
    if least is None:
        numbers = numbers.astype(np.float64, copy=False)
    if numbers[0] != 1:
        raise ValueError(
            f"{name} has the probabilities [{numbers[0]}] at the empty sequence; they "
            f"must be [1.0]"
        )
    least = -tolerance if least is None else least
    for begin, starts in _chunks_of(decisions):
        played = numbers[starts[0] : starts[-1]]
        place = _invalid_infoset(played, starts[:-1] - starts[0], tolerance, least)
        if place is not None:
            row = numbers[starts[place] : starts[place + 1]].tolist()
            raise ValueError(
                f"{name} has the probabilities {row} at the infoset "
                f"{form.label(player, begin + place)!r}; they must be at least 0 and "
                f"sum to 1"
            )
    # A linear program's zeros may be slightly negative.
    return numbers if least >= 0 or (numbers >= 0).all() else np.maximum(numbers, 0)


def _chunks_of(
    decisions: Decisions | PublicDecisions,
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield the first infoset and the first sequences of some infosets, and their end.

    The sequences of each chunk are contiguous.
    """
    if isinstance(decisions, Decisions):
        ends = np.append(decisions.first_sequence, decisions.num_sequences)
        for begin in range(0, len(decisions), _CHUNK):
            yield begin, ends[begin : begin + _CHUNK + 1]
        return
    for j, count in enumerate(decisions.num_actions.tolist()):
        first, end = decisions.first_sequence[j : j + 2].tolist()
        yield int(decisions.first_infoset[j]), np.arange(first, end + 1, count)


def _invalid_infoset(
    played: np.ndarray, starts: np.ndarray, tolerance: float, least: float
) -> int | None:
    """Return the first infoset without valid probabilities; None if all are valid.

    Args:
      played: Probabilities [n], with those of each infoset contiguous.
      starts: Index of the first probability of each infoset, int [I].
      tolerance: Largest deviation of a sum from 1.
      least: Smallest value of a probability.
    """
    total = np.add.reduceat(played, starts, dtype=np.float64)
    # Written so that NaN fails. Infinite and negative numbers may sum to 1.
    good, fine = np.abs(total - 1) <= tolerance, played >= least
    if good.all() and fine.all():
        return None
    good &= np.logical_and.reduceat(fine, starts)
    return int(np.argmin(good))


def move_probabilities(tree: GameTree, behaviour: Sequence[np.ndarray]) -> np.ndarray:
    """Return the probability of the move into each later history, float64 [N - 1].

    Args:
      tree: The game tree.
      behaviour: Probability of each sequence's last action, float64 [S] of each player.
    """
    histories = tree.histories
    above = histories.parent[1:]
    mover = histories.player[above]
    # Quotients of products of chance probabilities; never 0 / 0, because game trees
    # contain no outcomes of probability zero.
    step: np.ndarray = histories.chance[1:] / histories.chance[above]
    for p, probabilities in enumerate(behaviour):
        step = np.where(mover == p, probabilities[histories.sequence[p][1:]], step)
    return step


def history_values(
    tree: GameTree, behaviour: Sequence[np.ndarray] | None = None
) -> np.ndarray:
    """Return player 0's expected utility at each history, float64 [N].

    Args:
      tree: The game tree.
      behaviour: Probability of each sequence's last action, float64 [S] of each player;
        by default uniform.
    """
    histories = tree.histories
    if behaviour is None:
        behaviour = [uniform_behaviour(i.decisions) for i in tree.infosets]
    value = histories.utility.copy()
    step = move_probabilities(tree, behaviour)
    for depth in reversed(histories.by_depth[1:]):
        share = step[depth.start - 1 : depth.stop - 1] * value[depth]
        np.add.at(value, histories.parent[depth], share)
    return value


def action_values(
    tree: GameTree, behaviours: tuple[np.ndarray, np.ndarray]
) -> tuple[tuple[np.ndarray, np.ndarray], float]:
    """Compute exact counterfactual values of all actions, and the game's value.

    Args:
      tree: The game tree.
      behaviours: Each player's action probabilities, float64 [S].

    Returns:
      For each player float64 [S], the value of each sequence's last action in the
      player's own utility, weighted by the reach of the others (0 at the empty
      sequence); and player 0's expected utility.
    """
    histories = tree.histories
    value = history_values(tree, behaviours)
    mover = histories.player[histories.parent[1:]]
    reach = [
        reach_from_behaviour(infosets.decisions, behaviour)
        for infosets, behaviour in zip(tree.infosets, behaviours, strict=True)
    ]
    result = []
    for p, infosets in enumerate(tree.infosets):
        others = reach[1 - p][histories.sequence[1 - p]] * histories.chance
        after = 1 + np.flatnonzero(mover == p)
        weighted = (1 - 2 * p) * others[after] * value[after]
        result.append(
            np.bincount(
                histories.sequence[p][after],
                weighted,
                minlength=infosets.decisions.num_sequences,
            )
        )
    return (result[0], result[1]), float(value[0])
