"""Kinds of keys, their simulators, and a hash that distinguishes games and versions."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_choice, read_budget
from spiel_cr.common.messages import announce, progress_bar
from spiel_cr.games.opening.game_checks import chance_outcomes
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.simulator import Simulator
from spiel_cr.games.simulation.state_source import StateSource
from spiel_cr.games.simulation.workers import Workers

# Content of the keys: information states of batched rules, OpenSpiel's
# information-state strings, or, as in "buckets 169-200-200-200", bets and buckets.
RULES, STRINGS, BUCKETS = KINDS = "rules", "strings", "buckets"
# Number of matches in a fingerprint, and their largest number of moves.
_MATCHES, _MOVES = 8, 200
# Parameters that locate a game and do not change it.
_PLACES = ("filename",)


def kind_for(
    opened: Opened, *, use_rules: bool = True, buckets: str | None = None
) -> str:
    """Return the default kind of keys of a game.

    Args:
      opened: The game.
      use_rules: Whether to use the game's batched rules, if it has them.
      buckets: Maximum numbers of buckets of private cards in each round, such as
        "169-200-200-200".
    """
    if buckets is not None:
        return f"{BUCKETS} {buckets}"
    return RULES if use_rules and opened.rules is not None else STRINGS


def make_source(
    opened: Opened,
    kind: str,
    *,
    workers: int = 1,
    arrays: Mapping[str, np.ndarray] | None = None,
) -> Simulator:
    """Make the simulator of a game.

    Args:
      opened: The game.
      kind: Kind of keys, as returned by `kind_for`.
      workers: Number of processes that simulate OpenSpiel's states; 1: this process.
      arrays: Arrays of buckets from `bucket_arrays`; None: buckets are computed, which
        takes minutes in hold'em.

    Raises:
      ValueError: If the kind needs batched rules that the game does not have, if
        several processes are combined with batched rules, or if the rules do not
        support these buckets.
      WorkerFailedError: If a process ended.
    """
    kind, _, budget = kind.partition(" ")
    check_choice(kind, "kind", KINDS)
    game = opened.game
    if kind != STRINGS:
        if workers > 1:
            raise ValueError(
                f"workers={workers}: workers simulate OpenSpiel's states, but {game} "
                f"uses batched rules, in one process; omit workers, or disable these "
                f"rules (batched_rules=False, --no-batched-rules)"
            )
        if kind == RULES:
            return RulesSource(game, opened.rules)
        counts = read_budget(budget, "hand_buckets")
        plain: Any = opened.rules
        if not hasattr(plain, "bucketed"):
            raise ValueError(
                f"hand_buckets={budget}: {game} has no rules that assign hands to "
                f"buckets; use limit hold'em (universal_poker with betting=limit)"
            )
        if arrays is None:
            announce("putting hands into buckets")
        with progress_bar(desc="buckets", unit="") as bar:
            rules = plain.bucketed(counts, arrays, bar.update)
        return RulesSource(game, rules)
    return StateSource(game) if workers == 1 else Workers(game, workers)


def bucket_arrays(source: Simulator) -> dict[str, np.ndarray]:
    """Return the arrays of a simulator's buckets; an empty dict if it has none."""
    arrays = getattr(getattr(source, "rules", None), "bucket_arrays", dict)
    tables: dict[str, np.ndarray] = arrays()
    return tables


def fingerprint(source: Simulator) -> str:
    """Return a hash of a game's name and parameters, and of some fixed random matches.

    The hash includes keys, actions, chance probabilities and returns of these matches.
    It therefore distinguishes versions of a game, and contents of files from which
    games are read.

    Args:
      source: Simulator of the game.
    """
    random, digest = np.random.default_rng(0), hashlib.sha256()
    digest.update(repr(_settings(source.game)).encode())
    for _ in range(_MATCHES):
        state = source.game.new_initial_state()
        for _ in range(_MOVES):
            if state.is_terminal():
                digest.update(np.array(state.returns()).tobytes())
                break
            if state.is_chance_node():
                outcomes = sorted(chance_outcomes(state))
                legal = [action for action, _ in outcomes]
                digest.update(
                    np.array([probability for _, probability in outcomes]).tobytes()
                )
            else:
                legal = sorted(state.legal_actions())
                digest.update(source.key_of(state).tobytes())
            digest.update(np.array(legal, np.int64).tobytes())
            state.apply_action(legal[int(random.random() * len(legal))])
    return digest.hexdigest()


def _settings(game: pyspiel.Game) -> tuple[str, list[tuple[str, str]]]:
    """Return a game's name and its parameters, including default values."""
    kind = game.get_type()
    parameters = {**kind.parameter_specification, **game.get_parameters()}
    return kind.short_name, sorted(
        (name, repr(value)) for name, value in parameters.items() if name not in _PLACES
    )
