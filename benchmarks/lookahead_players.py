"""Matches of players with growing lookahead trees in large games.

They play against OpenSpiel's search with as much time per move, and against uniform
random play. For their NashConv in smaller games, use `spiel-cr evaluate`.
"""

import itertools
import statistics
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python.algorithms import ismcts, mcts
from open_spiel.python.policy import UniformRandomPolicy

import spiel_cr
from benchmarks.document import PEAK, Column
from benchmarks.frame import Axis, Benchmark, FactsTable, Row
from benchmarks.games import game_of
from spiel_cr.common.memory import peak_bytes
from spiel_cr.evaluation.referee import play_match
from spiel_cr.policies.beliefs.state_posterior import StatePosterior

OPPONENTS = {"ismcts": "OpenSpiel's ISMCTSBot", "uniform": "uniform random"}
# Number of histories from which the ISMCTSBot's determinisations are sampled.
_PARTICLES = 2000
# Simulations of the first search, and the number of matches that calibrate simulations.
_FIRST_SIMULATIONS, _CALIBRATION_MATCHES = 50, 4
_COUNTS = ("moves", "deadline_misses", "compilations")
AXES = {
    "game": Axis(("phantom_ttt", "ii_goofspiel7"), "short names, or OpenSpiel strings"),
    "bot": Axis(("resolving(max_histories=200000,move_ms=1000)",), "lookahead players"),
    "opponent": Axis(tuple(OPPONENTS), "opponents", tuple(OPPONENTS)),
    "move_ms": Axis(1000.0, "milliseconds of a move of the opponent"),
    "matches": Axis(200, "matches with alternating seats", least=2, identifies=False),
}


class Determinisations:
    """Sampled histories for a search in games without resampling.

    They are consistent with the player's information, weighted by chance and uniform
    play of the opponent.
    """

    def __init__(self, game: pyspiel.Game, seed: int) -> None:
        """Create beliefs of both players.

        Args:
          game: Sequential game.
          seed: Seed for all samples.
        """
        self._random = np.random.default_rng(seed)
        policy = UniformRandomPolicy(game)
        size: Any = {"max_histories": _PARTICLES, "particles": _PARTICLES}
        self._beliefs = [
            StatePosterior(game, player, policy, **size, seed=seed)
            for player in range(2)
        ]

    def __call__(self, state: pyspiel.State, player: int) -> pyspiel.State:
        """Sample a history that is possible for the player at its decision `state`."""
        self._beliefs[player].update(state)
        return self._beliefs[player].sample(self._random)


def search(game: pyspiel.Game, simulations: int, seed: int) -> pyspiel.Bot:
    """Create OpenSpiel's ISMCTSBot in Python; the one in C++ supports neither game.

    Args:
      game: Sequential game.
      simulations: Simulations per move.
      seed: Seed for all random choices.
    """
    random = np.random.RandomState(seed)
    evaluator = mcts.RandomRolloutEvaluator(n_rollouts=1, random_state=random)
    bot = ismcts.ISMCTSBot(game, evaluator, 2.0, simulations, random_state=random)
    bot.set_resampler(Determinisations(game, seed))
    return bot


def simulations_of(game: pyspiel.Game, move_ms: float) -> int:
    """Return the number of simulations that fit into the average time of a move.

    Later moves take less time than the first, so whole matches are timed.
    """
    simulations = _FIRST_SIMULATIONS
    for _ in range(_CALIBRATION_MATCHES):
        bots = [search(game, simulations, player) for player in range(2)]
        match = play_match(game, bots, np.random.default_rng(0))
        mean = statistics.fmean(itertools.chain(*match.seconds))
        simulations = max(_FIRST_SIMULATIONS, int(simulations * move_ms / 1000 / mean))
    return simulations


def measure(game: str, bot: str, opponent: str, move_ms: float, matches: int) -> Row:
    """Play matches with alternating seats.

    Args:
      game: OpenSpiel string or short name.
      bot: Bot string of a lookahead player.
      opponent: One of `OPPONENTS`.
      move_ms: Time per move of the opponent in milliseconds.
      matches: Number of matches; an odd number is rounded up.
    """
    loaded = game_of(game)
    bots = [spiel_cr.load_bot(loaded, bot, player, seed=player) for player in range(2)]
    simulations = simulations_of(loaded, move_ms) if opponent == "ismcts" else None

    def make_opponent(player: int, seed: int) -> pyspiel.Bot:
        if simulations is None:
            return spiel_cr.load_bot(loaded, "uniform", player, seed=seed)
        return search(loaded, simulations, seed)

    result = spiel_cr.play_matches(
        loaded, [lambda player, seed: bots[player], make_opponent], matches
    )
    counts = vars(bots[0].counts)
    return {
        "simulations": simulations,
        "mean": result.mean,
        "half_width": result.half_width,
        "wins": float((result.returns > 0).mean()),
        "drawn": float((result.returns == 0).mean()),
        "by_seat": result.returns.mean(axis=0).tolist(),
        **{k: sum(getattr(one.statistics, k) for one in bots) for k in _COUNTS},
        # Number of answers by their kind.
        "counts": {k: n + vars(bots[1].counts)[k] for k, n in counts.items()},
        "peak_bytes": peak_bytes(),
    }


_MATCHES: dict[str, Column] = {
    "game": "{game}",
    "player": "`{bot}`",
    "against": lambda row: OPPONENTS[row["opponent"]],
    "matches": "{matches}",
    "mean return": "{mean:+.3f} ± {half_width:.3f}",
    "wins": "{wins:.1%}",
    "drawn": "{drawn:.1%}",
    "as player 0": "{by_seat[0]:+.3f}",
    "as player 1": "{by_seat[1]:+.3f}",
    "its simulations": "{simulations:,}",
    "deadline misses": "{deadline_misses} of {moves:,}",
    "how answered": lambda row: ", ".join(
        f"{name.replace('_', ' ')} {n}" for name, n in row["counts"].items() if n
    ),
    **PEAK,
}
BENCHMARK = Benchmark(
    "lookahead_players",
    "Play matches of lookahead players in large games.",
    measure,
    AXES,
    (FactsTable("Matches.", _MATCHES, 3),),
)
