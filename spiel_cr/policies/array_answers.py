"""Policies asked for arrays of states at once, and the rules by which they can be."""

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.vectorised import VectorisedGame, of_game
from spiel_cr.games.worlds.world_rules import WorldRules
from spiel_cr.policies.world_policy import WorldPolicy


def rules_of(
    game: pyspiel.Game, policy: openspiel_policy.Policy
) -> VectorisedGame | None:
    """Rules on arrays by which a policy can be asked; None: there are none.

    A policy of hidden boards is asked by their worlds.
    """
    if isinstance(policy, WorldPolicy):
        return WorldRules(policy.worlds)
    rules = of_game(game)
    if rules is None:
        return None
    # Along one line of play.
    rows = rules.new_initial_states()
    while (player := int(rules.current_player(rows)[0])) != TERMINAL:
        legal = rules.legal_actions_mask(rows)
        if player == CHANCE:
            legal = legal & (rules.chance_probabilities(rows) > 0)
        else:
            try:
                on_arrays(policy, rules, rows, player, legal)
            except ValueError:
                return None
        rows = rules.child(rows, legal.argmax(axis=1))
    return rules


def on_arrays(
    policy: openspiel_policy.Policy,
    rules: VectorisedGame,
    states: np.ndarray,
    player: int,
    legal: np.ndarray,
) -> np.ndarray:
    """float64 [n, A], a policy's probabilities; legal actions alike where it has none.

    Raises:
      ValueError: the policy cannot be asked for arrays of states.
    """
    return _answered(policy, rules, states, player, legal)[0]


class AlongLines:
    """A policy that is asked along many lines of play, each from its beginning on.

    Most tables that were sampled have no row below a decision of the same player that
    they have no row for (`TablePolicy.from_roots`), and are not asked there: in a large
    game most of a rollout is beyond what was sampled.
    """

    def __init__(
        self, policy: openspiel_policy.Policy, lines: int, *, single: bool
    ) -> None:
        """Nothing was asked yet.

        Args:
          policy: of both players.
          lines: how many there are.
          single: a line has one state at a time; else all is asked.
        """
        self._policy = policy
        self._ends = single and getattr(policy, "from_roots", False)
        self._met = np.ones((2, lines), bool)

    def __call__(
        self,
        rules: VectorisedGame,
        states: np.ndarray,
        lines: np.ndarray,
        player: int,
        legal: np.ndarray,
    ) -> np.ndarray:
        """As `on_arrays`; `lines`, int64 [n]: of which line each state is."""
        met = self._met[player]
        ask = np.flatnonzero(met[lines])
        played = legal.astype(np.float64)
        if len(ask):
            played[ask], silent = _answered(
                self._policy, rules, states[ask], player, legal[ask]
            )
            if self._ends:
                # Where there is one action, tables have no row and may go on.
                met[lines[ask]] = ~silent | (legal[ask].sum(axis=1) == 1)
        return played


def _answered(
    policy: openspiel_policy.Policy,
    rules: VectorisedGame,
    states: np.ndarray,
    player: int,
    legal: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """What `on_arrays` gives; and bool [n], where the policy has none."""
    ask = getattr(policy, "array_probabilities", None)
    strings = getattr(rules, "information_state_strings", None)
    width = legal.shape[1]
    if type(policy) is openspiel_policy.UniformRandomPolicy:
        return legal.astype(np.float64), np.zeros(len(states), bool)
    if isinstance(policy, WorldPolicy) and isinstance(rules, WorldRules):
        known = rules.probabilities(policy.behaviour[player], states, player)
    elif ask is not None:
        known = np.asarray(ask(rules, states, player), np.float64)
    elif strings is not None and isinstance(policy, openspiel_policy.TabularPolicy):
        lookup = policy.state_lookup
        information = rules.information_state(states, player).reshape(len(states), -1)
        _, first, same = np.unique(
            information, axis=0, return_index=True, return_inverse=True
        )
        texts = strings(states[first], player)
        rows = np.array([lookup.get(text, -1) for text in texts])[same.reshape(-1)]
        known = np.where(rows[:, None] >= 0, policy.action_probability_array[rows], 0.0)
    else:
        raise ValueError(
            f"the blueprint, a {type(policy).__name__}, cannot be asked for arrays of "
            f"states; give a TabularPolicy, or a policy with array_probabilities"
        )
    played = np.zeros(legal.shape)
    shared = min(width, known.shape[1])
    played[:, :shared] = known[:, :shared]
    played = np.where(legal, np.maximum(played, 0.0), 0.0)
    silent = ~(played.sum(axis=1) > 0)
    played[silent] = legal[silent]
    return played, silent
