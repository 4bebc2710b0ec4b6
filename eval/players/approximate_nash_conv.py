"""Approximate NashConv: responses that were found, measured beside the exact ones."""

import math
import time
from typing import Any, NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.common.checks import check_iterations
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.players import bots, opponent_strings
from spiel_cr.policies import best_responses
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.policies.best_responses import (
    best_response,
    best_response_value,
    reach_of,
)
from spiel_cr.responses import (
    ismcts_br,
    ismcts_br_bot,
    learn_compiled,
    learn_states,
    opponents,
)
from spiel_cr.responses.ismcts_config import SearchConfig
from spiel_cr.responses.learning import LearningConfig, Stage
from spiel_cr.responses.local_best_response import LBRBot, lbr
from spiel_cr.responses.state_responder import StateResponder

from . import match as matches_lib

METHODS = ("exact", "ismcts", "lbr", "learned")

# A normal variable is inside of +- so many standard errors with probability 0.95.
_Z = 1.959964
# Of a round of learning on states, where an episode takes a tenth of a second or more.
_EPISODES = 64

Behaviours = tuple[np.ndarray, np.ndarray]


class Seat(NamedTuple):
    """A response in one seat. Values are expected rewards of the responder, in the
    game's units.

    Attributes:
      player: the responder.
      value: exact where the game was compiled and the opponent's policy is known, else
        `matches_value`.
      exact_value: of a best response; None where it is not known.
      on_policy: what the opponent's own policy gets in this seat; None where not known.
      matches_value: mean of matches.
      half_width: half of the 95 % confidence interval of `matches_value`.
      matches: how many were played.
      simulations: or rollouts, to find the response; 0 where there are none.
      seconds: to find the response.
    """

    player: int
    value: float
    exact_value: float | None
    on_policy: float | None
    matches_value: float
    half_width: float
    matches: int
    simulations: int
    seconds: float


def opponent_behaviour(tree: CompiledGame, text: str, *, seed: int = 0) -> Behaviours:
    """An opponent from a string, see `opponent_strings.load_opponent`.

    Returns:
      For each seat float64 [S], its action probabilities.
    """
    if text == "uniform":
        first, second = (
            policy_lib.uniform_behaviour(i.decisions) for i in tree.infosets
        )
        return first, second
    policy = opponent_strings.load_opponent(text, tree, seed=seed)
    return policy_lib.behaviour_from_policy(tree, policy)


def on_tree(
    tree: CompiledGame,
    player: int,
    behaviour: Behaviours,
    method: str,
    config: SearchConfig,
    *,
    leaf: str | None = None,
    rounds: int = 20,
    matches: int = 1000,
    rival: pyspiel.Bot | None = None,
    seed: int = 0,
) -> Seat:
    """Finds a response on a compiled game and measures it.

    Args:
      tree: the compiled game.
      player: the responder.
      behaviour: both players' action probabilities; the responder's tell what the
        policy itself gets in its seat.
      method: one of `METHODS`.
      config: of "ismcts", and of the searches of "learned".
      leaf: of "lbr"; None: call in poker, else uniform.
      rounds: of "learned", of episodes and training.
      matches: to estimate the value by.
      rival: the opponent itself where `behaviour` is an estimate of it: the value is
        then what the response gets in matches against it, and no exact one is known.
      seed: of searches and matches.

    Raises:
      ValueError: a bad argument.
      ImportError: "learned" without the extra [deep].
    """
    _check(method, player, matches)
    other = behaviour[1 - player]
    reach = reach_of(tree.form, behaviour)[1 - player]
    begun, simulations = time.perf_counter(), 0
    if method == "exact":
        found = best_response(tree.form, player, reach)
    elif method == "lbr":
        found = lbr(tree, player, other, leaf=leaf or default_leaf(tree.game))
    elif method == "learned":
        stage = Stage("opponent", other, rounds)
        settings = LearningConfig(search=config, evaluate_every=rounds)
        learned = learn_compiled.learn_response(
            tree, player, [stage], settings, seed=seed, progress=True
        )
        found, simulations = learned.behaviour, learned.simulations
    else:
        response = ismcts_br.search_response(
            tree, player, other, config, seed=seed, progress=True
        )
        found, simulations = response.behaviour, response.simulations
    seconds = time.perf_counter() - begun
    if rival is not None:
        responder = bots.PolicyBot(
            player, policy_lib.tabular_policy(tree, _seated(player, found, other))
        )
        mean, half = _interval(
            _play(tree.game, player, responder, rival, matches, seed)
        )
        known: dict[str, Any] = {"value": mean, "exact_value": None, "on_policy": None}
    else:
        returns = _play_on_tree(
            tree,
            _seated(player, found, other),
            matches,
            np.random.default_rng([seed, 1]),
        )
        mean, half = _interval(returns[player])
        known = {
            "value": _worth(tree, player, found, other),
            **exact(tree, player, behaviour),
        }
    return Seat(
        player=player,
        matches_value=mean,
        half_width=half,
        matches=matches,
        simulations=simulations,
        seconds=seconds,
        **known,
    )


def exact(tree: CompiledGame, player: int, behaviour: Behaviours) -> dict[str, float]:
    """What a best response to a strategy gets, and what that gets itself in the seat.

    Args:
      tree: the compiled game.
      player: the responder.
      behaviour: both players' action probabilities.

    Returns:
      `exact_value` and `on_policy` of a `Seat`.
    """
    reach = reach_of(tree.form, behaviour)[1 - player]
    return {
        "exact_value": best_response_value(tree.form, player, reach),
        "on_policy": _worth(tree, player, behaviour[player], behaviour[1 - player]),
    }


def default_leaf(game: pyspiel.Game) -> str:
    """How local best response plays by default: "call" in poker, else "uniform"."""
    try:
        opponents.chump(game, "always_call")
    except ValueError:
        return "uniform"
    return "call"


def on_states(
    game: pyspiel.Game,
    player: int,
    opponent: openspiel_policy.Policy,
    method: str,
    config: SearchConfig,
    *,
    leaf: str | None = None,
    rollouts: int = 1000,
    rounds: int = 20,
    matches: int = 1000,
    rival: pyspiel.Bot | None = None,
    seed: int = 0,
) -> Seat:
    """Measures a response that searches in matches, on OpenSpiel's states.

    Args:
      game: sequential, as from `load_game`.
      player: the responder.
      opponent: its policy.
      method: "ismcts", "lbr" or "learned".
      config: of "ismcts", and of the searches of "learned".
      leaf: of "lbr"; None: call in poker, else uniform.
      rollouts: of "lbr", a decision.
      rounds: of "learned", of 64 episodes and training.
      matches: how many.
      rival: who plays them in the opponent's place, where its policy is an estimate.
      seed: of all draws.

    Raises:
      ValueError: a bad argument, or a method that needs the whole tree.
      ImportError: "learned" without the extra [deep].
    """
    _check(method, player, matches)
    begun, simulations = time.perf_counter(), 0
    prior_and_value: ismcts_br_bot.StatePriorAndValue = ismcts_br_bot.uniform_prior
    if method == "learned":
        stage = Stage("opponent", opponent, rounds)
        settings = LearningConfig(
            search=config, episodes=_EPISODES, evaluate_every=rounds
        )
        learned = learn_states.learn_on_states(
            game, player, [stage], settings, seed=seed, matches=1, progress=True
        )
        prior_and_value, simulations = learned.prior_and_value, learned.simulations
    if method in ("ismcts", "learned"):
        responder: StateResponder = ismcts_br_bot.ISMCTSBRBot(
            game, player, opponent, config, seed=seed, prior_and_value=prior_and_value
        )
    elif method == "lbr":
        responder = LBRBot(
            game,
            player,
            opponent,
            leaf=leaf or default_leaf(game),
            rollouts=rollouts,
            seed=seed,
        )
    else:
        raise ValueError(
            f"method={method!r} needs the whole tree, and the game was not compiled; "
            f"choose ismcts, lbr or learned, or allow more memory"
        )
    if rival is None:
        rival = bots.PolicyBot(1 - player, opponent, seed=seed)
    mean, half = _interval(_play(game, player, responder, rival, matches, seed))
    return Seat(
        player=player,
        value=mean,
        exact_value=None,
        on_policy=None,
        matches_value=mean,
        half_width=half,
        matches=matches,
        simulations=simulations + responder.simulations,
        seconds=time.perf_counter() - begun,
    )


def summary(seats: list[Seat]) -> dict[str, Any]:
    """What is known of one seat, or of both together (approximate NashConv).

    Returns:
      `value`, `exact_value`, `share`, `half_width`, `matches_value`, `matches`,
      `simulations`, `seconds` and `seats`. `share` is the gain over the opponent's own
      policy that was found, divided by that of a best response; with both seats that is
      NashConv found by NashConv. It and `exact_value` are None where not known.
    """
    exact = share = None
    if all(seat.exact_value is not None for seat in seats):
        exact = sum(seat.exact_value or 0.0 for seat in seats)
        base = sum(seat.on_policy or 0.0 for seat in seats)
        if exact - base > 1e-12:
            share = (sum(seat.value for seat in seats) - base) / (exact - base)
    return {
        "value": sum(seat.value for seat in seats),
        "exact_value": exact,
        "share": share,
        "half_width": math.sqrt(sum(seat.half_width**2 for seat in seats)),
        "matches_value": sum(seat.matches_value for seat in seats),
        "matches": sum(seat.matches for seat in seats),
        "simulations": sum(seat.simulations for seat in seats),
        "seconds": sum(seat.seconds for seat in seats),
        "seats": [seat._asdict() for seat in seats],
    }


def _play(
    game: pyspiel.Game,
    player: int,
    responder: pyspiel.Bot,
    rival: pyspiel.Bot,
    matches: int,
    seed: int,
) -> np.ndarray:
    """float64 [matches], the responder's returns; equal deals for equal seeds."""
    seated, returns = _seated(player, responder, rival), []
    for number in tqdm(range(matches), desc=f"matches, player {player}", unit="match"):
        rng = np.random.default_rng([seed, player, number])
        chance = np.random.default_rng([seed, number])
        match = matches_lib.play_match(game, seated, rng, chance=chance)
        returns.append(match.returns[player])
    return np.array(returns)


def _check(method: str, player: int, matches: int) -> None:
    if method not in METHODS:
        raise ValueError(f"method={method!r}; choose one of {', '.join(METHODS)}")
    if player not in (0, 1):
        raise ValueError(f"player={player!r} must be 0 or 1")
    check_iterations(matches, name="matches")
    if matches < 2:
        raise ValueError(f"matches={matches}: an interval needs two or more")


def _seated(player: int, mine: Any, other: Any) -> Any:
    """Both players' things, by seat."""
    return (mine, other) if player == 0 else (other, mine)


def _worth(
    tree: CompiledGame, player: int, mine: np.ndarray, other: np.ndarray
) -> float:
    """The player's expected reward."""
    reach = reach_of(tree.form, _seated(player, mine, other))
    return (1 if player == 0 else -1) * best_responses.expected_value(tree.form, reach)


def _interval(returns: np.ndarray) -> tuple[float, float]:
    """Mean, and half of a 95 % confidence interval."""
    error = float(returns.std(ddof=1)) / math.sqrt(len(returns))
    return float(returns.mean()), _Z * error


def _play_on_tree(
    tree: CompiledGame,
    behaviour: Behaviours,
    number: int,
    rng: np.random.Generator,
) -> np.ndarray:
    """float64 [2, number], both players' returns of matches between strategies."""
    histories = tree.histories
    step = policy_lib.move_probabilities(tree, behaviour)
    # Children are contiguous: one running sum serves all lists of odds.
    ends = np.concatenate([np.zeros(2), np.cumsum(step)])
    counts = np.bincount(histories.parent[1:], minlength=len(histories))
    first = np.searchsorted(histories.parent, np.arange(len(histories)))
    at = np.zeros(number, np.int64)
    while True:
        going = np.flatnonzero(counts[at] > 0)
        if not len(going):
            break
        here = at[going]
        begin, end = first[here], first[here] + counts[here]
        low, high = ends[begin], ends[end]
        drawn = low + rng.random(len(going)) * (high - low)
        child = np.searchsorted(ends, drawn, side="right") - 1
        at[going] = np.clip(child, begin, end - 1)
    utility = histories.utility[at]
    result: np.ndarray = np.stack([utility, -utility])
    return result
