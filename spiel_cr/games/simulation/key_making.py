"""How keys of a game are made: who steps it, and a hash that tells that apart."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common.checks import check_choice, read_budget
from spiel_cr.common.messages import announce, is_wanted
from spiel_cr.games.opening.game_checks import chance_outcomes
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.simulator import Simulator
from spiel_cr.games.simulation.state_source import StateSource
from spiel_cr.games.simulation.workers import Workers

# What keys are hashes of: information as batched rules give it, OpenSpiel's
# information-state strings, or, as in "buckets 169-200-200-200", bets and buckets.
RULES, STRINGS, BUCKETS = KINDS = "rules", "strings", "buckets"
# Matches that are looked at for a fingerprint, and the most moves of each.
_MATCHES, _MOVES = 8, 200
# Parameters that say where a game lies, and not what it is.
_PLACES = ("filename",)


def kind_for(
    opened: Opened, *, use_rules: bool = True, buckets: str | None = None
) -> str:
    """How keys of a game are made by default.

    Args:
      opened: the game.
      use_rules: take its batched rules, if it has them.
      buckets: of private cards, at most so many in each round: "169-200-200-200".
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
    """What steps a game's histories.

    Args:
      opened: the game.
      kind: of its keys, as `kind_for` says.
      workers: processes that step OpenSpiel's states; 1: this one does.
      arrays: of buckets, from `bucket_arrays`; None: buckets are made, which takes
        minutes in hold'em.

    Raises:
      ValueError: a game without batched rules is to be played by them; or these are
        to be played by several processes; or they know no such buckets.
      WorkerFailedError: a process ended.
    """
    kind, _, budget = kind.partition(" ")
    check_choice(kind, "kind", KINDS)
    game = opened.game
    if kind != STRINGS:
        if workers > 1:
            raise ValueError(
                f"workers={workers} step OpenSpiel's states, and {game} is played by "
                f"batched rules, in one process; leave workers out, or turn these "
                f"rules off (batched_rules=False, --no-batched-rules)"
            )
        if kind == RULES:
            return RulesSource(game, opened.rules)
        counts = read_budget(budget, "hand_buckets")
        plain: Any = opened.rules
        if not hasattr(plain, "bucketed"):
            raise ValueError(
                f"hand_buckets={budget}: {game} has no rules that put hands into "
                f"buckets; limit hold'em has (universal_poker with betting=limit)"
            )
        if arrays is None:
            announce("putting hands into buckets")
        with tqdm(desc="buckets", unit="", disable=not is_wanted()) as bar:
            rules = plain.bucketed(counts, arrays, bar.update)
        return RulesSource(game, rules)
    return StateSource(game) if workers == 1 else Workers(game, workers)


def bucket_arrays(source: Simulator) -> dict[str, np.ndarray]:
    """The buckets of a source; nothing where it has none."""
    arrays = getattr(getattr(source, "rules", None), "bucket_arrays", dict)
    tables: dict[str, np.ndarray] = arrays()
    return tables


def fingerprint(source: Simulator) -> str:
    """A hash of a game's name and parameters, and of some matches, always the same.

    In these it takes in keys, actions, the probabilities of chance and returns. They
    tell two versions of a game apart, and files from which games are read.

    Args:
      source: of the game.
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
    """A game's name, and its parameters with those that were left out."""
    kind = game.get_type()
    parameters = {**kind.parameter_specification, **game.get_parameters()}
    return kind.short_name, sorted(
        (name, repr(value)) for name, value in parameters.items() if name not in _PLACES
    )
