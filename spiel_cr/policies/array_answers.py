"""Policies asked for arrays of states at once, and the rules by which they can be."""

from collections.abc import Sequence

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.errors import InvalidPolicyError
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.batched_rules import BatchedRules, of_game
from spiel_cr.games.phantom.phantom_world_rules import PhantomWorldRules
from spiel_cr.policies.conversions import SUM_TOLERANCE, member
from spiel_cr.policies.foreign import AdaptedPolicy
from spiel_cr.policies.phantom_policy import PhantomPolicy


def rules_of(
    game: pyspiel.Game,
    policy: openspiel_policy.Policy,
    players: Sequence[int] = (0, 1),
) -> BatchedRules | None:
    """Return batched rules by which a policy can be queried; None: there are none.

    A policy of a phantom game is queried by its worlds.

    Args:
      game: The game.
      policy: The policy.
      players: The players whose decisions it is queried at.
    """
    if isinstance(policy, PhantomPolicy):
        return PhantomWorldRules(policy.worlds)
    rules = of_game(game)
    if rules is None:
        return None
    # Along one line of play.
    rows = rules.new_initial_states()
    while (player := int(rules.current_player(rows)[0])) != TERMINAL:
        legal = rules.legal_actions_mask(rows)
        if player == CHANCE:
            legal = legal & (rules.chance_probabilities(rows) > 0)
        elif player in players:
            try:
                on_arrays(policy, rules, rows, player, legal)
            except InvalidPolicyError:
                raise
            except ValueError:
                return None
        rows = rules.child(rows, legal.argmax(axis=1))
    return rules


def on_arrays(
    policy: openspiel_policy.Policy,
    rules: BatchedRules,
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
        rules: BatchedRules,
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
    rules: BatchedRules,
    states: np.ndarray,
    player: int,
    legal: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """What `on_arrays` gives; and bool [n], where the policy has none."""
    policy = member(policy, player)
    ask = getattr(policy, "array_probabilities", None)
    foreign = isinstance(policy, AdaptedPolicy)
    if foreign and ask is None and not policy.simultaneous:
        policy = policy.policy
    strings = getattr(rules, "information_state_strings", None)
    width = legal.shape[1]
    if type(policy) is openspiel_policy.UniformRandomPolicy:
        return legal.astype(np.float64), np.zeros(len(states), bool)
    if isinstance(policy, PhantomPolicy) and isinstance(rules, PhantomWorldRules):
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
        if missing := [text for text in texts if text not in lookup]:
            raise InvalidPolicyError(
                f"{type(policy).__name__} of {policy.game}: it has no row for the "
                f"information state {missing[0]!r} of player {player}; give a policy "
                f"that covers every information state"
            )
        rows = np.array([lookup[text] for text in texts])[same.reshape(-1)]
        known = policy.action_probability_array[rows]
    else:
        raise ValueError(
            f"the blueprint, a {type(policy).__name__}, cannot be asked for arrays of "
            f"states; give a TabularPolicy, or a policy with array_probabilities"
        )
    played = np.zeros(legal.shape)
    shared = min(width, known.shape[1])
    played[:, :shared] = known[:, :shared]
    played = np.where(legal, np.maximum(played, 0.0), 0.0)
    total = played.sum(axis=1)
    # Written so that NaN fails.
    if foreign and not (np.abs(total - 1) <= SUM_TOLERANCE).all():
        row = int(np.argmin(np.abs(total - 1) <= SUM_TOLERANCE))
        raise InvalidPolicyError(
            f"{type(policy).__name__}: it gives player {player} the probabilities "
            f"{known[row].tolist()} where the legal actions are "
            f"{np.flatnonzero(legal[row]).tolist()}; they must be at least 0 and sum "
            f"to 1"
        )
    silent = ~(total > 0)
    played[silent] = legal[silent]
    return played, silent
