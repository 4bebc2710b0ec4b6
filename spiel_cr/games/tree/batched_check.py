"""Contract test of batched rules: comparison with the game of OpenSpiel's states.

This is for tests of batched rules; the package itself does not use it.
"""

import contextlib
import dataclasses
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common.errors import GameTooLargeError, TooManyHistoriesError
from spiel_cr.common.messages import one_line
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree_builder import build_tree

# Number of states whose tensors are compared, because OpenSpiel makes slow lists.
_TENSORS = 100


def check(
    game: str | pyspiel.Game,
    random: np.random.Generator,
    *,
    rollouts: int = 100,
    max_histories: int = 20_000,
) -> None:
    """Compare a game's batched rules with its states, in random play and small trees.

    Args:
      game: OpenSpiel game string or game with a `batched_rules` method.
      random: Random generator for the rollouts.
      rollouts: Number of rollouts.
      max_histories: Largest number of histories of games that are also compared as a
        complete tree.

    Raises:
      ValueError: If they differ, or the game has no batched rules. The message names
        the place.
    """
    check_rollouts(game, random, rollouts=rollouts)
    with contextlib.suppress(GameTooLargeError, TooManyHistoriesError):
        check_tree(game, max_histories=max_histories)


def check_tree(game: str | pyspiel.Game, *, max_histories: int | None = None) -> None:
    """Build a game tree both ways and compare all histories and infosets.

    Raises:
      GameTooLargeError: If the tree would need more memory than there is.
      TooManyHistoriesError: If there are more than `max_histories` histories.
      ValueError: If the results differ. The message names the field.
    """
    compiled, walked = (
        build_tree(
            game,
            observations=True,
            max_histories=max_histories,
            batched_rules=batched_rules,
        )
        for batched_rules in (True, False)
    )
    _compare(compiled.game, "histories", compiled.histories, walked.histories)
    for player in range(2):
        infosets, others = compiled.infosets[player], walked.infosets[player]
        _compare(compiled.game, f"infosets[{player}]", infosets, others)
    _compare(
        compiled.game,
        "payoffs",
        compiled.sequence_form.payoffs,
        walked.sequence_form.payoffs,
    )


def _compare(game: pyspiel.Game, name: str, actual: Any, expected: Any) -> None:
    """Compare arrays and strings, also within dataclasses."""
    if dataclasses.is_dataclass(actual):
        for field in dataclasses.fields(actual):
            inner = getattr(actual, field.name), getattr(expected, field.name)
            _compare(game, f"{name}.{field.name}", *inner)
        return
    if isinstance(actual, np.ndarray) and isinstance(expected, np.ndarray):
        same = actual.dtype == expected.dtype and np.array_equal(actual, expected)
    elif actual is None or expected is None:
        same = actual is expected
    else:
        same = len(actual) == len(expected) and all(
            np.array_equal(a, b) for a, b in zip(actual, expected, strict=True)
        )
    if not same:
        raise ValueError(
            f"{one_line(game)}: {name} of the tree built by the batched rules differs "
            f"from that built by states; correct the rules or the states"
        )


def check_rollouts(
    game: str | pyspiel.Game, random: np.random.Generator, *, rollouts: int = 100
) -> None:
    """Play a game at random by its states and its batched rules, and compare them.

    At every step both must agree on the acting player, legal actions, chance
    probabilities, utilities and information. The batched rules are called with
    read-only arrays, because they must not modify their arguments.

    Args:
      game: OpenSpiel game string or game with a `batched_rules` method.
      random: Random generator; one draw per step and rollout.
      rollouts: Number of rollouts, which are played in parallel.

    Raises:
      ValueError: If they differ, or the game has no batched rules. The message names
        the actions.
    """
    opened = open_game(game)
    game, rules = opened.game, opened.rules
    if rules is None:
        raise ValueError(
            f"{one_line(game)}: the game has no batched rules; give its class a method "
            f"`batched_rules` (docs/how-to/batched-rules.md)"
        )
    comparison = _Comparison(game, rules)
    rows = np.repeat(rules.new_initial_states(), rollouts, axis=0)
    states = [game.new_initial_state() for _ in range(rollouts)]
    while True:
        comparison.compare(_read_only(rows), states)
        on = [i for i, state in enumerate(states) if not state.is_terminal()]
        rows, states = _read_only(rows[on]), [states[i] for i in on]
        if not states:
            return
        actions = [
            legal[int(random.integers(len(legal)))]
            for legal in (state.legal_actions() for state in states)
        ]
        for state, action in zip(states, actions, strict=True):
            state.apply_action(action)
        rows = rules.child(rows, np.array(actions, np.int64))


def _read_only(rows: np.ndarray) -> np.ndarray:
    """Return a copy that cannot be written to."""
    rows = rows.copy()
    rows.setflags(write=False)
    return rows


class _Comparison:
    """Comparison of batched rules with states, including the players' information."""

    def __init__(self, game: pyspiel.Game, rules: BatchedRules) -> None:
        self._game = game
        self._rules = rules
        self._string_of: dict[tuple, str] = {}
        self._key_of: dict[tuple, tuple] = {}

    def compare(self, rows: np.ndarray, states: list[pyspiel.State]) -> None:
        """Compare rows with states, one to one."""
        players = [state.current_player() for state in states]
        self._same("current_player", self._rules.current_player(rows), players, states)
        over = np.array([state.is_terminal() for state in states])
        ended = [state for state in states if state.is_terminal()]
        if ended:
            utility = self._rules.returns(_read_only(rows[over]))
            self._same("returns", utility, [s.player_return(0) for s in ended], ended)
        states = [state for state in states if not state.is_terminal()]
        if not states:
            return
        live = _read_only(rows[~over])
        mask = self._rules.legal_actions_mask(live)
        legal = [np.flatnonzero(row).tolist() for row in mask]
        wanted = [state.legal_actions() for state in states]
        self._same("legal_actions_mask", legal, wanted, states)
        draws = [i for i, state in enumerate(states) if state.is_chance_node()]
        if draws:
            probabilities = self._rules.chance_probabilities(_read_only(live[draws]))
            for i, row in zip(draws, probabilities, strict=True):
                expected = [p for _, p in states[i].chance_outcomes()]
                near = np.abs(row[legal[i]] - expected) < 1e-12
                self._same("chance_probabilities", [near.all()], [True], [states[i]])
        for actor in range(2):
            acting = [i for i, s in enumerate(states) if s.current_player() == actor]
            for player in range(2) if acting else ():
                some = [states[i] for i in acting]
                self._compare_information(_read_only(live[acting]), some, actor, player)
                self._compare_tensors(_read_only(live[acting]), some, actor, player)

    def _compare_information(
        self, rows: np.ndarray, states: list[pyspiel.State], actor: int, player: int
    ) -> None:
        """Compare a player's information where `actor` acts."""
        try:
            strings = [state.information_state_string(player) for state in states]
        except pyspiel.SpielError:
            if actor == player:
                raise
            return  # observations of the other player are optional
        make = getattr(self._rules, "information_state_strings", None)
        if make is not None:
            actual = make(rows, player)
            self._same("information_state_strings", actual, strings, states)
        keys = self._rules.information_state(rows, player)
        numbers = [(actor, player, *np.ravel(key).tolist()) for key in keys]
        words = [(actor, player, string) for string in strings]
        first_strings = list(map(self._string_of.setdefault, numbers, strings))
        self._same("information_state", first_strings, strings, states)
        back = list(map(self._key_of.setdefault, words, numbers))
        self._same("information_state", numbers, back, states)

    def _compare_tensors(
        self, rows: np.ndarray, states: list[pyspiel.State], actor: int, player: int
    ) -> None:
        """Compare tensors where `actor` acts, if the rules provide them."""
        make = getattr(self._rules, "information_state_tensor", None)
        if make is None:
            return
        rows, states = rows[:_TENSORS], states[:_TENSORS]
        try:
            tensors = [state.information_state_tensor(player) for state in states]
        except pyspiel.SpielError:
            if actor == player:
                raise
            return
        actual, wanted = make(rows, player), np.array(tensors, np.float32)
        if actual.dtype not in (bool, np.float32) or actual.shape != wanted.shape:
            raise ValueError(
                f"{self._game}: information_state_tensor of the batched rules returns "
                f"{actual.dtype} {list(actual.shape)}; it must return float32 or bool "
                f"{list(wanted.shape)}"
            )
        wrong = np.argwhere(actual != wanted)
        if len(wrong):
            row, place = wrong[0].tolist()
            raise ValueError(
                f"{self._game}: after actions {states[row].history()} "
                f"information_state_tensor of the batched rules has "
                f"{float(actual[row, place])} at index {place}, but the state has "
                f"{wanted[row, place]}; correct one of them"
            )

    def _same(
        self, method: str, actual: Any, expected: Any, states: list[pyspiel.State]
    ) -> None:
        """Raise ValueError that names the first state at which items differ."""
        for answer, wanted, state in zip(actual, expected, states, strict=True):
            if answer != wanted:
                raise ValueError(
                    f"{self._game}: after actions {state.history()} {method} of the "
                    f"batched rules returns {answer}, but that of the state {wanted}; "
                    f"correct one of them"
                )
