"""Multi-valued states: at the end of a lookahead the opponent chooses how it goes on.

One number per history says what a history is worth if both players go on as somebody
once planned, and the solver above then plays as if nobody could do anything else. Here
the opponent o of the resolving player i has k *continuation strategies* for the rest of
the game, and chooses one at each of its augmented infosets at the cut, from all that it
knows there, while i follows its blueprint (Brown, Sandholm & Amos 2018, "Depth-limited
solving for imperfect-information games"; Kubíček, Burch & Lisý 2024, "Look-ahead search
on top of policy networks in imperfect information games"). To a solver these are one
more decision of o and payoffs; no ranges are needed.

What k strategies hold of o's possibilities decides how good that is. Two ways to choose
them, by `kind`:

  responses  o's best responses in fictitious play that begins with the blueprint (Brown
             1951), on compiled games. Each is the best answer to the mean of how i has
             played so far, and i then answers the mean of all these: so they come from
             where i would go if o had only the ones before.
  biased     the blueprint with the probability of the first, second, ... action at each
             infoset multiplied, as Brown et al. do for fold, call and raise. Games that
             are not compiled have these alone, and values by rollouts (`rollouts.py`).

Both are deterministic and fixed before anything is solved. They depend neither on the
cut nor on how the result is judged.
"""

from collections.abc import Callable
from typing import Literal, TypeAlias, get_args

import numpy as np
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_choice, check_iterations, check_seed
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies.best_responses import best_response
from spiel_cr.policies.conversions import (
    behaviour_from_policy,
    check_behaviour,
    history_values,
    reach_from_behaviour,
    uniform_behaviour,
)
from spiel_cr.policies.leaf_values import AnyGame, HistoryValues
from spiel_cr.policies.result import load_tabular_policy
from spiel_cr.resolving.leaves.rollout_values import Rollouts, bias_of

Behaviour = tuple[np.ndarray, np.ndarray]
Strategies: TypeAlias = Behaviour | openspiel_policy.Policy | str
ContinuationKind = Literal["responses", "biased"]

# Share of uniform play in what is responded to: responses would be arbitrary without it
# where the other player never goes.
_EVERYWHERE = 1e-3


class Continuations(HistoryValues):
    """Values by the blueprint of one player and k continuations of the other.

    Attributes:
      k: how many continuations each player has. The first is the blueprint; those of a
        smaller k are the first ones of a larger k.
    """

    def __init__(
        self,
        path: Strategies,
        k: int = 4,
        *,
        kind: ContinuationKind | None = None,
        rollouts: int = 10,
        seed: int = 0,
    ) -> None:
        """Takes a blueprint of both players.

        Args:
          path: of a policy file; or the blueprint itself, an OpenSpiel policy or each
            player's action probabilities, float64 [S].
          k: continuations, at least 1; 1: the blueprint alone.
          kind: how the others are made; None: "responses" on compiled games, "biased"
            elsewhere.
          rollouts: per history and continuation, in games that are not compiled.
          seed: of the rollouts.

        Raises:
          ValueError: a bad k, kind, rollouts or seed.
        """
        self.k = check_iterations(k, name="k")
        kinds = (*get_args(ContinuationKind), None)
        self._kind: ContinuationKind | None = check_choice(kind, "kind", kinds)
        self._blueprint = path
        self._given = check_iterations(rollouts, name="rollouts"), check_seed(seed)
        self._rollouts: Rollouts | None = None
        self._drawn: int | None = None
        self._known: tuple[CompiledGame, list[np.ndarray]] | None = None

    def __call__(
        self, game: AnyGame, histories: np.ndarray, player: int = 0, /
    ) -> np.ndarray:
        if not isinstance(game, CompiledGame):
            return self._by_rollouts().values(game, histories, player)
        if self._known is None or self._known[0] is not game:
            behaviour = self.behaviour(game)
            values = [self._values(game, behaviour, p) for p in range(2)]
            self._known = game, values
        return self._known[1][player][histories]

    def draw_from(self, number: int, /) -> None:
        """See `HistoryValues`; means nothing in compiled games."""
        self._drawn = number
        if self._rollouts is not None:
            self._rollouts.draw_from(number)

    def behaviour(self, tree: CompiledGame) -> Behaviour:
        """The blueprint: for each player float64 [S], by logical sequence.

        Raises:
          OSError, DamagedFileError: its file cannot be read.
          ValueError: it is one for another game.
        """
        given = self._blueprint
        if isinstance(given, str):
            given = load_tabular_policy(given, tree)
        if isinstance(given, openspiel_policy.Policy):
            return behaviour_from_policy(tree, given)
        first, second = (check_behaviour(tree, p, given[p]) for p in range(2))
        return first, second

    def strategies(self, tree: CompiledGame, player: int) -> list[np.ndarray]:
        """What a player may go on by.

        Args:
          tree: the compiled game.
          player: o, who chooses.

        Returns:
          k of float64 [S], action probabilities by logical sequence.
        """
        kind = self._kind or "responses"
        return continuations(tree, self.behaviour(tree), player, self.k, kind)

    def policy(
        self, load: Callable[[str], openspiel_policy.Policy] = load_tabular_policy
    ) -> openspiel_policy.Policy:
        """The blueprint, of a game that is not compiled.

        Args:
          load: reads its file the first time.

        Raises:
          OSError, DamagedFileError: its file cannot be read.
          ValueError: the blueprint is arrays.
        """
        if isinstance(self._blueprint, str):
            self._blueprint = load(self._blueprint)
        if not isinstance(self._blueprint, openspiel_policy.Policy):
            raise ValueError(
                "a blueprint of arrays is one of a compiled game; give an "
                "OpenSpiel policy, or the path of a policy file"
            )
        return self._blueprint

    def _by_rollouts(self) -> Rollouts:
        """What plays the rest of games that are not compiled.

        Raises:
          ValueError: best responses were asked for, or the blueprint is arrays.
        """
        if self._rollouts is None:
            if self._kind == "responses":
                raise ValueError(
                    "kind='responses' needs a compiled game; leave kind out, or take "
                    "'biased'"
                )
            self._rollouts = Rollouts(self.policy(), self.k, *self._given)
            if self._drawn is not None:
                self._rollouts.draw_from(self._drawn)
        return self._rollouts

    def _values(
        self, tree: CompiledGame, behaviour: Behaviour, player: int
    ) -> np.ndarray:
        """float64 [N, k], player 0's utility at each history where `player` is i."""
        columns, kind = [], self._kind or "responses"
        for chosen in continuations(tree, behaviour, 1 - player, self.k, kind):
            pair = (behaviour[0], chosen) if player == 0 else (chosen, behaviour[1])
            columns.append(history_values(tree, pair))
        return np.stack(columns, axis=1)


def continuations(
    tree: CompiledGame,
    blueprint: Behaviour,
    player: int,
    k: int,
    kind: ContinuationKind = "responses",
) -> list[np.ndarray]:
    """Continuation strategies of one player.

    Args:
      tree: the compiled game.
      blueprint: for each player float64 [S], action probabilities.
      player: o, whose continuations these are.
      k: how many; the first is the blueprint. The j-th does not depend on k.
      kind: "biased", see `biased`, or "responses": both players' means, in sequence
        form, begin with the blueprint. In turn, o best-responds to i's mean, which is
        the next continuation, and i to o's mean; each is taken into the mean.

    Returns:
      k of float64 [S], by logical sequence.
    """
    if kind == "biased":
        decisions, most = (
            tree.infosets[player].decisions,
            tree.game.num_distinct_actions(),
        )
        return [biased(decisions, blueprint[player], j, most) for j in range(k)]
    sides = [infosets.decisions for infosets in tree.infosets]
    mean = [reach_from_behaviour(sides[p], blueprint[p]) for p in range(2)]
    uniform = [reach_from_behaviour(d, uniform_behaviour(d)) for d in sides]
    found = [blueprint[player]]
    for j in range(1, k):
        for mover in (player, 1 - player):
            other = 1 - mover
            met = (1 - _EVERYWHERE) * mean[other] + _EVERYWHERE * uniform[other]
            response = best_response(tree.form, mover, met)
            mean[mover] += reach_from_behaviour(sides[mover], response) / j
            mean[mover] *= j / (j + 1)
            if mover == player:
                found.append(response)
    return found


def biased(
    decisions: Decisions, behaviour: np.ndarray, number: int, most: int
) -> np.ndarray:
    """A strategy with one action made more likely at each infoset.

    Args:
      decisions: the player's.
      behaviour: float64 [S], action probabilities.
      number: 0: as it is; j: by what `rollouts.bias_of` says.
      most: the most actions that the game has.

    Returns:
      float64 [S].
    """
    if number == 0:
        return behaviour
    action, factor = bias_of(number, most)
    owner = decisions.owner[1:]
    place = np.arange(1, decisions.num_sequences) - decisions.first_sequence[owner]
    return _multiplied(decisions, behaviour, np.where(place == action, factor, 1.0))


def _multiplied(
    decisions: Decisions, behaviour: np.ndarray, factors: np.ndarray
) -> np.ndarray:
    """float64 [S], probabilities times factors, float64 [S - 1], summing to 1."""
    weights, owner = behaviour[1:] * factors, decisions.owner[1:]
    total = np.bincount(owner, weights, minlength=len(decisions))
    return np.append(1.0, weights / total[owner])
