"""Multi-valued states: the opponent chooses a continuation strategy at each leaf.

If a leaf has one fixed value, that value assumes that both players continue by given
strategies. The solver above then plays as if neither player could deviate from them.
Here the opponent o of the re-solving player i has k *continuation strategies* for the
rest of the game. At each of its augmented infosets at the depth limit, o chooses one of
them, using all its information there, while i follows its blueprint (Brown, Sandholm &
Amos 2018, "Depth-limited solving for imperfect-information games"; Kubíček, Burch &
Lisý 2024, "Look-ahead search on top of policy networks in imperfect information
games"). A solver sees only one more decision of o, with payoffs; it needs no ranges.

The quality of the result depends on how well the k strategies represent o's options.
Here they are o's best responses in fictitious play that starts from the blueprint
(Brown 1951): each is a best response to the average of i's strategies so far, and i
then responds to the average of o's. Each new continuation therefore exploits what i
would do if o had only the earlier ones. Games whose tree is not built use biased
versions of the blueprint instead, see `rollout_values.Rollouts`.

Continuation strategies are deterministic and are computed before anything is solved.
Therefore they depend neither on the depth limit nor on how the result is evaluated.
"""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_iterations
from spiel_cr.common.pairs import ordered_pair, pair
from spiel_cr.games.game_form import GameForm
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.behaviour_files import check_tabular_file, read_policy
from spiel_cr.policies.best_responses import best_response
from spiel_cr.policies.conversions import (
    check_behaviour,
    history_values,
    reach_from_behaviour,
    uniform_behaviour,
)
from spiel_cr.policies.leaf_values import TreeLeafValues
from spiel_cr.policies.policy_adapters import as_policy
from spiel_cr.policies.queries import query

Behaviour = tuple[np.ndarray, np.ndarray]
Strategies: TypeAlias = Behaviour | openspiel_policy.Policy | str

# Share of uniform play that is mixed into a strategy before the response to it is
# computed. Without it, responses would be arbitrary at infosets that the other player
# never reaches.
_EVERYWHERE = 1e-3


def blueprint_behaviour(
    blueprint: Strategies, form: GameForm, name: str = "blueprint"
) -> Behaviour:
    """Return a blueprint, for each player float64 [S], one number per sequence.

    Args:
      blueprint: Path of a policy file of a game tree, a policy, or action
        probabilities.
      form: The game tree, or another form of a game.
      name: Name of the argument, for errors.

    Raises:
      OSError: If the file cannot be read.
      CorruptFileError: If the file was modified since it was written.
      ValueError: If the blueprint is one for another game.
    """
    if isinstance(blueprint, str):
        check_tabular_file(blueprint)
        blueprint = read_policy(blueprint, form)
    policy = as_policy(blueprint, form.game, name)
    if policy is not None:
        return query(form, policy)
    return pair(check_behaviour(form, p, blueprint[p]) for p in range(2))


class Continuations(TreeLeafValues):
    """Leaf values: i follows its blueprint, and o one of k continuation strategies.

    Attributes:
      k: Number of continuation strategies of each player. The first is the blueprint.
        The strategies for a smaller k are the first ones of those for a larger k.
    """

    def __init__(self, path: Strategies, k: int = 4) -> None:
        """Store the blueprint; values are computed when they are first needed.

        Args:
          path: Path of a policy file with the blueprint of both players; or the
            blueprint itself, as an OpenSpiel policy or as action probabilities of each
            player, float64 [S].
          k: Number of continuation strategies, at least 1; 1 is the blueprint alone.

        Raises:
          ValueError: If k is not a positive integer.
        """
        self.k = check_iterations(k, name="k")
        self._blueprint = path

    def values(self, tree: GameTree) -> Sequence[np.ndarray]:
        behaviour = self.behaviour(tree)
        return [self._values(tree, behaviour, player) for player in range(2)]

    def behaviour(self, tree: GameTree) -> Behaviour:
        """Return the blueprint, see `blueprint_behaviour`."""
        return blueprint_behaviour(self._blueprint, tree)

    def strategies(self, tree: GameTree, player: int) -> list[np.ndarray]:
        """Return the continuation strategies of one player.

        Args:
          tree: The game tree.
          player: Player that chooses among them, the opponent of the re-solving player.

        Returns:
          Probability of each sequence's last action in each of k strategies, float64
          [S].
        """
        return continuations(tree, self.behaviour(tree), player, self.k)

    def _values(self, tree: GameTree, behaviour: Behaviour, player: int) -> np.ndarray:
        """Return utilities of player 0 if `player` re-solves, float64 [N, k]."""
        columns = []
        for chosen in continuations(tree, behaviour, 1 - player, self.k):
            both = ordered_pair(player, behaviour[player], chosen)
            columns.append(history_values(tree, both))
        return np.stack(columns, axis=1)


def continuations(
    tree: GameTree, blueprint: Behaviour, player: int, k: int
) -> list[np.ndarray]:
    """Compute continuation strategies of one player by fictitious play.

    The means of both players' strategies, in sequence form, start with the blueprint.
    In turn, the player o responds to the mean of the other player i, which gives the
    next continuation, and i responds to the mean of o. Each response enters the mean of
    its player.

    Args:
      tree: The game tree.
      blueprint: Action probabilities of both players, float64 [S].
      player: The player o, whose continuations are computed.
      k: Number of continuations; the first is the blueprint. The j-th does not depend
        on k.

    Returns:
      k strategies: probability of each sequence's last action, float64 [S].
    """
    sides = [infosets.decisions for infosets in tree.infosets]
    mean = [reach_from_behaviour(sides[p], blueprint[p]) for p in range(2)]
    uniform = [reach_from_behaviour(d, uniform_behaviour(d)) for d in sides]
    strategies = [blueprint[player]]
    for j in range(1, k):
        for mover in (player, 1 - player):
            other = 1 - mover
            target = (1 - _EVERYWHERE) * mean[other] + _EVERYWHERE * uniform[other]
            response = best_response(tree.sequence_form, mover, target)
            mean[mover] += reach_from_behaviour(sides[mover], response) / j
            mean[mover] *= j / (j + 1)
            if mover == player:
                strategies.append(response)
    return strategies
