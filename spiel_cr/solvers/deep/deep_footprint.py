"""How much memory training takes, told before it starts.

What networks learn from grows with every match: rows of features in reservoirs and in a
critic's memory, and the iterates of a bank. The estimate is of what that can come to by
the end, so that a run that would not fit is refused at its beginning, not after hours.
"""

import math
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common import memory, networks
from spiel_cr.games.opening.game_checks import feature_count
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.deep.deep_config import DeepConfig
from spiel_cr.solvers.deep.outputs import Shape
from spiel_cr.solvers.deep.self_play.self_play_config import SelfPlayConfig
from spiel_cr.solvers.deep.tensors import TensorKnowledge

# Of a float64 weight, of a float32, and of the numbers besides features that a move of
# a critic's memory has (action, utility, who acts next).
_WEIGHT, _FLOAT, _MOVE = 8, 4, 9


class Need(NamedTuple):
    """What training takes at most, in bytes.

    Attributes:
      reservoirs: of advantages and strategies, of both players, and what a fit copies
        of one.
      moves: what a critic learns from.
      iterates: banks of both players, and a copy when the average is made.
      visits: of a batch that is learned from and forgotten.
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
) -> Need:
    """What training takes at most.

    Matches count with the most moves that the game allows. Without a number of
    iterations memories count as full, and a bank without a limit cannot be told: it
    counts as one iterate.

    Args:
      config: the algorithm.
      game: that is trained on.
      knowledge: what networks see of it.
      iterations: of the run; None: not known.
    """
    actions, row = knowledge.num_actions, knowledge.row_bytes
    length = game.max_game_length()
    visit = row + actions * (1 + _FLOAT) + _WEIGHT
    if isinstance(config, SelfPlayConfig):
        # Decisions, what both saw, and advantages (in double precision, mostly); and
        # the rows that are padded for a network.
        each = 5 * row + actions * (1 + 2 * _FLOAT + 6 * _WEIGHT) + 4 * _FLOAT
        return Need(0.0, 0.0, 0.0, 2.0 * config.episodes * length * each)
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
    if "bank" in config.averages:
        count = min(config.bank or math.inf, iterations or math.inf)
        shape = Shape(*(knowledge.num_features, actions, config.hidden, config.layers))
        one = networks.num_weights(shape.widths) * _FLOAT
        iterates = 4.0 * one * (count if count < math.inf else 1)
    return Need(reservoirs, moves, iterates, visits)


def check(
    config: DeepConfig | SelfPlayConfig,
    game: pyspiel.Game,
    knowledge: TensorKnowledge,
    iterations: int | None,
    limit: memory.Limit,
) -> None:
    """Refuses training that would take more memory than a limit.

    Args:
      config: the algorithm.
      game: that is trained on.
      knowledge: what networks see of it.
      iterations: of the run; None: not known.
      limit: of the whole process, as users give it.

    Raises:
      GameTooLargeError: it would; the message names the setting that takes most of it,
        and a number that fits.
      ValueError: the limit is no size.
    """
    need = estimate(config, game, knowledge, iterations)
    total = memory.BASE_BYTES + sum(need)
    most = max(Need._fields, key=lambda name: float(getattr(need, name)))
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
    """Refuses a critic of a compiled game whose table would take more than a limit.

    Such a critic sees tensors of both players at every decision of the game, read once.

    Args:
      config: the algorithm.
      tree: the game.
      limit: of the whole process, as users give it.

    Raises:
      GameTooLargeError: it would.
      ValueError: the limit is no size, or the game does not provide these tensors.
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
        # It is read, and laid out for networks.
        memory.BASE_BYTES + 2.0 * decisions * row,
        limit,
        "sample the game without its tree: give form='simulator' (--form simulator)",
    )


def _remedy(
    config: DeepConfig | SelfPlayConfig, most: str, share: float, iterations: int | None
) -> str:
    """What takes less; `share` is how much of the largest part has room."""
    if isinstance(config, SelfPlayConfig):
        return f"choose episodes={max(1, int(share * config.episodes))}"
    names = {
        "reservoirs": ("capacity", config.capacity),
        "moves": ("critic_capacity", config.critic_capacity),
        "iterates": ("bank", config.bank or iterations or 1),
        "visits": ("traversals", config.traversals),
    }
    name, value = names[most]
    less = int(share * value)
    least = config.critic_batch if most == "moves" else 1
    other = "mmd, which keeps no visits"
    if less < least:
        return f"choose features that are smaller, or {other}"
    return f"choose {name}={less}, or {other}"
