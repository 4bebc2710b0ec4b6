"""Blueprints of lookahead players: loading, sampling, and queries at many histories.

A lookahead player follows its blueprint wherever it has no accepted solution, and its
trees grow first where the blueprint leads. If no blueprint is given, it is computed by
Monte Carlo CFR on a simulator, without building the game tree.
"""

import dataclasses

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.errors import GameTooLargeError, ImperfectRecallError
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.simulation.labelled import Nodes
from spiel_cr.policies.array_queries import row_probabilities
from spiel_cr.solvers.policy_files import check_policy_file, load_policy
from spiel_cr.solvers.representation import GameOptions
from spiel_cr.solvers.run import Goal
from spiel_cr.solvers.solve import solve

# The algorithm that computes a blueprint if none is given.
_SAMPLER = "os-mccfr(batch=1024)"


def check_blueprint(blueprint: str | openspiel_policy.Policy | None) -> None:
    """Check that a blueprint is a policy file or a policy, whatever the game.

    Args:
      blueprint: Path of a policy file, or a policy. None: a blueprint will be sampled.

    Raises:
      OSError, CorruptFileError: If its file cannot be read.
      ValueError: If it is neither.
    """
    if isinstance(blueprint, str):
        check_policy_file(blueprint)
    elif not isinstance(blueprint, openspiel_policy.Policy | None):
        raise ValueError(
            f"blueprint={blueprint!r} must be an OpenSpiel policy or the path of a "
            f"policy file; leave it out to sample one"
        )


def blueprint_of(
    game: pyspiel.Game,
    blueprint: str | openspiel_policy.Policy | None,
    iterations: int,
    seconds: float | None,
    seed: int,
) -> openspiel_policy.Policy:
    """Load or sample the blueprint of a player.

    Args:
      game: The sequential game.
      blueprint: Path of a policy file, or a policy. None: sample one.
      iterations: Batches to sample.
      seconds: Time to sample, instead of `iterations`. None: no time limit.
      seed: Seed for sampling.

    Raises:
      OSError, CorruptFileError: If the file cannot be read.
      ValueError: If it is for another game.
      ImperfectRecallError: If a player has imperfect recall, which lookahead trees do
        not support.
      GameTooLargeError: If the visited infosets do not fit into memory.
    """
    if isinstance(blueprint, str):
        return load_policy(blueprint, game)
    if blueprint is not None:
        return blueprint
    goal = Goal(iterations) if seconds is None else Goal(seconds=seconds)
    try:
        result = solve(
            game, _SAMPLER, goal, options=GameOptions("simulator"), seed=seed
        )
    except ImperfectRecallError as error:
        raise ImperfectRecallError(
            f"{game}: imperfect recall: an information state of a player is reached "
            f"after different own actions, so no blueprint is sampled by these; give "
            f"blueprint=FILE to a player that searches (hidden boards are solved by "
            f"their worlds), or choose other parameters of the game"
        ) from error
    except GameTooLargeError as error:
        raise GameTooLargeError(
            f"{game}: no blueprint is sampled by {_SAMPLER} here; give blueprint=FILE "
            f"({error})"
        ) from error
    return result.average_policy()


@dataclasses.dataclass(frozen=True)
class Blueprint:
    """A policy of both players that is queried at many histories at once.

    Attributes:
      policy: The OpenSpiel policy.
      rules: Batched rules to which the states of histories belong. None: they are
        OpenSpiel's states.
    """

    policy: openspiel_policy.Policy
    rules: BatchedRules | None

    def play(self, nodes: Nodes, player: int) -> np.ndarray:
        """Return action probabilities at histories where a player acts.

        Args:
          nodes: The histories.
          player: The player that acts at all of them.

        Returns:
          Probabilities, float64 [sum of num_actions], history by history, in ascending
          order of actions; uniform if the policy has none.
        """
        assert not np.isin(nodes.player, (CHANCE, TERMINAL)).any()
        if (rules := self.rules) is not None:
            legal = rules.legal_actions_mask(nodes.states)
            weights = row_probabilities(self.policy, rules, nodes.states, player, legal)
            return (weights / weights.sum(axis=1, keepdims=True))[legal]
        answers = []
        for state in nodes.states:
            answer = self.policy.action_probabilities(state)
            weights = np.array([answer.get(a, 0.0) for a in state.legal_actions()])
            total, count = weights.sum(), len(weights)
            answers.append(weights / total if total else np.full(count, 1 / count))
        return np.concatenate(answers)
