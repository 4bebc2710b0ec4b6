"""Estimates of the memory of training, before it starts.

Training data grow with every match: rows of features in reservoirs and in a critic's
memory, and the iterates of an ensemble. The estimate is an upper bound for the end of
the run, so that a run that does not fit raises an error at its start instead of failing
after hours.
"""

import math
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import memory, networks
from spiel_cr.games.opening.game_checks import feature_count
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.outputs import PerceptronShape
from spiel_cr.solvers.deep.self_play.self_play_config import SelfPlayConfig
from spiel_cr.solvers.deep.tensors import TensorKnowledge

# Bytes of a float64 weight, of a float32 number, and of the fields of a move in a
# critic's memory other than features (action, utility, next player).
_WEIGHT, _FLOAT, _MOVE = 8, 4, 9


class TrainingMemory(NamedTuple):
    """Maximum memory of training in bytes.

    Attributes:
      reservoirs: Reservoirs of advantages and strategies of both players, and a fit's
        copy of one.
      moves: Training data of a critic.
      iterates: Ensembles of both players, and a copy for the average.
      visits: Visits of a batch that is discarded after training.
    """

    reservoirs: float
    moves: float
    iterates: float
    visits: float


def estimate(
    config: DeepConfig | SelfPlayConfig,
    game: pyspiel.Game,
    knowledge: TensorKnowledge,
    iterations: int | None,
) -> TrainingMemory:
    """Return the maximum memory of training.

    Every match is assumed to have the maximum number of moves. Without a number of
    iterations, memories are assumed to be full. The size of an unlimited ensemble is
    then unknown, and one iterate is assumed.

    Args:
      config: Settings of the algorithm.
      game: Game of the training.
      knowledge: Input of the networks.
      iterations: Number of iterations of the run; None: unknown.
    """
    actions, row = knowledge.num_actions, knowledge.row_bytes
    length = game.max_game_length()
    visit = row + actions * (1 + _FLOAT) + _WEIGHT
    if isinstance(config, SelfPlayConfig):
        # Decisions, information of both players, advantages (mostly in double
        # precision), and padded rows for a network.
        each = 5 * row + actions * (1 + 2 * _FLOAT + 6 * _WEIGHT) + 4 * _FLOAT
        return TrainingMemory(0.0, 0.0, 0.0, 2.0 * config.episodes * length * each)
    visited_decisions = math.inf
    if iterations is not None and config.sampling == "outcome":
        visited_decisions = float(config.traversals) * length * iterations
    kept = min(config.capacity, visited_decisions)
    fitted = kept * (_WEIGHT + 2 * actions * _FLOAT)
    many = 2 * (config.accumulate == "mean") + 2 * ("network" in config.averages)
    reservoirs = many * kept * visit + bool(many) * fitted
    visits = 0.0
    if config.accumulate == "cumulative" and config.sampling == "outcome":
        visits = 2.0 * config.traversals * length * visit
    moves = 0.0
    if config.values != "sampled":
        moves = config.critic_capacity * (4.0 * row + _MOVE + actions)
    iterates = 0.0
    if "ensemble" in config.averages:
        count = min(config.ensemble or math.inf, iterations or math.inf)
        widths = PerceptronShape.of(knowledge, config).widths
        one = networks.num_weights(widths) * _FLOAT
        iterates = 4.0 * one * (count if count < math.inf else 1)
    return TrainingMemory(reservoirs, moves, iterates, visits)


def check(
    config: DeepConfig | SelfPlayConfig,
    game: pyspiel.Game,
    knowledge: TensorKnowledge,
    iterations: int | None,
    limit: memory.Limit,
) -> None:
    """Raise GameTooLargeError if training would exceed a memory limit.

    Args:
      config: Settings of the algorithm.
      game: Game of the training.
      knowledge: Input of the networks.
      iterations: Number of iterations of the run; None: unknown.
      limit: Memory limit of the complete process, as users specify it.

    Raises:
      GameTooLargeError: If the limit would be exceeded; the message names the setting
        with the largest share, and a value that fits.
      ValueError: If the limit is invalid.
    """
    need = estimate(config, game, knowledge, iterations)
    total = memory.BASE_BYTES + sum(need)
    most = max(TrainingMemory._fields, key=lambda name: float(getattr(need, name)))
    part = float(getattr(need, most))
    room = memory.parse_limit(limit) - (total - part)
    share = min(1.0, max(0.0, room / part)) if part else 0.0
    memory.check_need(
        f"{config.name!r} on {game}, with rows of {knowledge.row_bytes} bytes,",
        total,
        limit,
        _remedy(config, most, share, iterations),
    )


def check_tree(
    config: DeepConfig | SelfPlayConfig, tree: GameTree, limit: memory.Limit
) -> None:
    """Raise GameTooLargeError if a critic's table exceeds a memory limit.

    Such a critic uses tensors of both players at every decision of the game tree, which
    are computed once.

    Args:
      config: Settings of the algorithm.
      tree: Game tree.
      limit: Memory limit of the complete process, as users specify it.

    Raises:
      GameTooLargeError: If the limit would be exceeded.
      ValueError: If the limit is invalid, or the game does not provide these tensors.
    """
    if isinstance(config, DeepConfig) and config.values == "sampled":
        return
    if config.network == "table":
        return
    decisions = int(np.count_nonzero(tree.histories.player >= 0))
    row = 2 * feature_count(tree.game, config.features) * _FLOAT
    memory.check_need(
        f"{config.name!r} on {tree.game}, whose critic has a table of {decisions:,} "
        f"decisions with rows of {row:,} bytes,",
        # The tensors exist twice: as read from states, and as input of networks.
        memory.BASE_BYTES + 2.0 * decisions * row,
        limit,
        "use form='simulator' to sample the game without a tree (--form simulator)",
    )


def _remedy(
    config: DeepConfig | SelfPlayConfig, most: str, share: float, iterations: int | None
) -> str:
    """Return a suggestion that needs less memory.

    Args:
      config: Settings of the algorithm.
      most: Name of the largest part in `TrainingMemory`.
      share: Share of the largest part that fits.
      iterations: Number of iterations of the run; None: unknown.
    """
    if isinstance(config, SelfPlayConfig):
        return f"choose episodes={max(1, int(share * config.episodes))}"
    names = {
        "reservoirs": ("capacity", config.capacity),
        "moves": ("critic_capacity", config.critic_capacity),
        "iterates": ("ensemble", config.ensemble or iterations or 1),
        "visits": ("traversals", config.traversals),
    }
    name, value = names[most]
    less = int(share * value)
    least = config.critic_batch if most == "moves" else 1
    other = "mmd, which stores no visits"
    if less < least:
        return f"choose smaller features, or {other}"
    return f"choose {name}={less}, or {other}"
