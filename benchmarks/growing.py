"""Players of games that are too large to be compiled: matches of the growing player.

Run `python -m benchmarks.growing --help`. docs/growing.md has the tables.
"""

import argparse
import concurrent.futures
import itertools
import json
import math
import multiprocessing
import pathlib
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from open_spiel.python.algorithms import ismcts

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from benchmarks import conditions, document
from eval import matches
from spiel_cr import bots, growing_belief, growing_bot, memory, state_posterior
from spiel_cr.growing_config import GrowingConfig
from spiel_cr.growing_source import Rollouts
from spiel_cr.growing_states import StateSource
from spiel_cr.resolver_config import ResolvingConfig

__all__ = [
    "GAMES",
    "MARKS",
    "OPPONENTS",
    "PLAYERS",
    "Worlds",
    "main",
    "markdown",
    "measure",
]

# Names in tables, and the OpenSpiel strings.
GAMES = {
    "phantom_ttt": "phantom_ttt",
    "II-goofspiel, 7 cards": "python_ii_goofspiel(num_cards=7)",
}
OPPONENTS = {"ismcts": "OpenSpiel's ISMCTSBot", "uniform": "uniform random"}
# Who is measured, by the name that `--players` takes.
PLAYERS = {"resolving": "resolving", "oos": "outcome sampling"}
MARKS = document.Marks("<!-- growing tables: begin -->", "<!-- growing tables: end -->")

# Histories that the ISMCTSBot's samples are drawn from.
_WORLDS = 2000
# How a player came to its answers, see `growing_resolver.GrowingStatistics`.
_WAYS = "inside", "beyond", "between", "stale", "lost"
# Of a normal distribution, for intervals of 95 %.
_Z = 1.96

Row = dict[str, Any]
Run = Callable[..., Row]


def main(arguments: Sequence[str] | None = None, *, run: Run | None = None) -> int:
    """Plays, writes facts as JSON lines, prints tables.

    Args:
      arguments: of the command line.
      run: how to call a measurement; by default in a new process each, so that its
        peak of memory is its own.
    """
    options = _parse(arguments)
    run = run or _in_a_process
    facts = conditions.facts()
    out = pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with out.open("w") as file:
        plan = options.max_histories, options.move_ms, options.matches, options.seed
        every = itertools.product(options.games, options.players, options.opponents)
        for name, player, opponent in every:
            game, batches = GAMES.get(name, name), options.iterations
            row = run(measure, name, game, player, opponent, *plan, batches)
            rows.append({**facts, **row})
            print(json.dumps(rows[-1]), file=file, flush=True)
            words = f"{name}: {player} against {opponent}: mean {row['mean']:+.3f}"
            print(words, file=sys.stderr, flush=True)
    text = markdown(rows)
    print(text)
    if options.markdown:
        document.write(options.markdown, text, MARKS)
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.growing",
        description="Play matches in games that cannot be compiled whole.",
        epilog="What is measured, and how, is written in docs/growing.md.",
    )
    parser.add_argument(
        "--games",
        nargs="+",
        default=list(GAMES),
        metavar="GAME",
        help=f"OpenSpiel strings, or of {'; '.join(GAMES)} (default: these)",
    )
    parser.add_argument(
        "--opponents", nargs="+", choices=list(OPPONENTS), default=list(OPPONENTS)
    )
    parser.add_argument(
        "--players",
        nargs="+",
        choices=list(PLAYERS),
        default=["resolving"],
        help="who is measured (default: resolving)",
    )
    parser.add_argument(
        "--iterations",
        type=int,
        default=20,
        help="batches a move of outcome sampling, which has no clock "
        "(default %(default)s)",
    )
    parser.add_argument(
        "--matches",
        type=int,
        default=200,
        help="against each opponent, seats in turn (default %(default)s)",
    )
    parser.add_argument(
        "--move-ms", type=float, default=1000.0, help="default %(default)s"
    )
    parser.add_argument(
        "--max-histories",
        type=int,
        default=100_000,
        help="of the growing part (default %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, help="default %(default)s")
    parser.add_argument(
        "--out",
        default="out/benchmarks/growing.jsonl",
        help="JSON lines replace this file (default %(default)s)",
    )
    document.add_option(parser, MARKS)
    options = parser.parse_args(arguments)
    if options.iterations < 1:
        parser.error("--iterations must be at least 1")
    if options.matches < 2:
        parser.error("--matches must be at least 2, one for each seat")
    return options


def _in_a_process(measure: Callable[..., Row], *arguments: Any) -> Row:
    """Calls a function in a new process."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(measure, *arguments).result()


class Worlds:
    """Histories for a search to sample from, for games without a resampler.

    They are those that give the player its information, weighted by chance and uniform
    play of the opponent; of very many, some are drawn.
    """

    def __init__(self, game: pyspiel.Game, seed: int) -> None:
        """Knows nothing yet.

        Args:
          game: a sequential game.
          seed: of the draws.
        """
        self._source = StateSource(game, Rollouts(), observed=False)
        self._random = np.random.default_rng(seed)
        self._seen: list[state_posterior.Stage] = []
        self._belief: growing_belief.Belief | None = None
        self._player = -1

    def __call__(self, state: pyspiel.State, player: int) -> pyspiel.State:
        """A history that the player thinks possible at a state where it acts.

        Raises:
          RuntimeError: none of the histories that were kept is possible.
        """
        seen = state_posterior.observations(state, player, between=False)
        if (player, seen) != (self._player, self._seen):
            self._follow(seen, player)
        assert self._belief is not None
        nodes, weights = self._belief
        number = self._random.choice(len(weights), p=weights)
        return nodes.handles[number].clone()

    def _follow(self, seen: list[state_posterior.Stage], player: int) -> None:
        done = len(self._seen)
        goes_on = (
            0 < done <= len(seen)
            and self._seen[:-1] == seen[: done - 1]
            and self._seen[-1].seen == seen[done - 1].seen
            and self._player == player
        )
        belief = self._belief
        if not goes_on or belief is None:
            done, belief = 0, growing_belief.Belief(self._source.root(), np.ones(1))
        for number in range(done, len(seen)):
            action = seen[number - 1].action if number else None
            belief = growing_belief.advance(
                *(self._source, belief, player, action, seen[number].seen[-1]),
                lambda labels, counts: np.repeat(1 / counts, counts),
                most=_WORLDS,
                random=self._random,
            )
            if belief is None:
                raise RuntimeError(f"no history kept gives {seen[number].seen[-1]!r}")
        self._seen, self._belief, self._player = seen, belief, player


class _Playout:
    """Evaluates states by a random playout, as OpenSpiel's searches in Python ask."""

    def __init__(self, game: pyspiel.Game, seed: int) -> None:
        self._source = StateSource(game, Rollouts(1, seed), observed=False)

    def evaluate(self, state: pyspiel.State) -> np.ndarray:
        handles = np.empty(1, object)
        handles[0] = state
        player = np.array([state.current_player()])
        value = self._source.values(handles, player)[0]
        return np.array([value, -value])

    def prior(self, state: pyspiel.State) -> list[tuple[int, float]]:
        legal = state.legal_actions()
        return [(action, 1 / len(legal)) for action in legal]


def measure(
    name: str,
    game: str,
    player: str,
    opponent: str,
    max_histories: int,
    move_ms: float,
    count: int,
    seed: int,
    iterations: int,
) -> Row:
    """Plays matches.

    Args:
      name: for tables.
      game: OpenSpiel string.
      player: of `PLAYERS`.
      opponent: of `OPPONENTS`.
      max_histories: of the growing part.
      move_ms: milliseconds of a move.
      count: matches, seats in turn.
      seed: of everything.
      iterations: batches a move of outcome sampling.

    Raises:
      ValueError: a bot failed, or the opponent chose what it may not.
    """
    loaded = spiel_cr.load_game(game)
    start = memory.peak_bytes()
    begun = time.perf_counter()
    ours = [
        _player(player, game, seat, max_histories, move_ms, iterations, seed)
        for seat in range(2)
    ]
    made = time.perf_counter() - begun
    other, simulations = _opponent(opponent, loaded, move_ms, seed)
    rng = np.random.default_rng(seed)
    returns: tuple[list[float], list[float]] = ([], [])
    spent: tuple[list[float], list[float]] = ([], [])
    illegal = programs = 0
    for number in range(count):
        seat = number % 2
        pair = [other, other]
        pair[seat] = ours[seat]
        with matches.count_programs() as (compiled, observer):
            try:
                match = matches.play_match(loaded, pair, rng, observers=[observer])
            except matches.IllegalMoveError as error:
                if error.player != seat:
                    raise
                illegal += 1
                continue
        programs += sum(compiled)
        returns[seat].append(match.returns[seat])
        spent[0].extend(match.seconds[seat])
        spent[1].extend(match.seconds[1 - seat])
    if min(map(len, returns)) < 1:
        raise ValueError(
            f"{game}: illegal moves ended {illegal} of {count} matches of {player} "
            f"against {opponent}; none is left for one of the seats"
        )
    every = np.array(returns[0] + returns[1])
    counts = [vars(bot.counts) for bot in ours]
    return {
        "name": name,
        "game": game,
        "player": player,
        "opponent": opponent,
        "simulations": simulations,
        "max_histories": max_histories,
        "move_ms": move_ms,
        "iterations": iterations if player == "oos" else None,
        "matches": len(every),
        "mean": float(every.mean()),
        "interval": _Z * float(every.std(ddof=1)) / math.sqrt(len(every)),
        "won": float((every > 0).mean()),
        "drawn": float((every == 0).mean()),
        "by_seat": [statistics.fmean(seat) for seat in returns],
        "moves": sum(bot.statistics.moves for bot in ours),
        # Outcome sampling has no clock.
        "late_moves": None
        if player == "oos"
        else sum(bot.statistics.late_moves for bot in ours),
        "max_ms": 1000 * max(spent[0]),
        "mean_ms": 1000 * statistics.fmean(spent[0]),
        "opponent_ms": 1000 * statistics.fmean(spent[1]),
        "illegal_moves": illegal,
        "programs_compiled": programs,
        "counts": {key: counts[0][key] + counts[1][key] for key in (*_WAYS, "shrunk")},
        "most_histories": max(each["most_histories"] for each in counts),
        "seconds_to_make": made,
        "device": jax.default_backend(),
        "peak_bytes": memory.peak_bytes(),
        "start_bytes": start,
        "seed": seed,
    }


def _player(
    kind: str,
    game: str,
    seat: int,
    max_histories: int,
    move_ms: float,
    iterations: int,
    seed: int,
) -> growing_bot.GrowingResolvingBot | growing_bot.GrowingOOSBot:
    """Who is measured."""
    growing = GrowingConfig(max_histories)
    if kind == "oos":
        return growing_bot.GrowingOOSBot(
            game, seat, growing=growing, iterations=iterations, seed=seed
        )
    config = ResolvingConfig(move_ms=move_ms)
    return growing_bot.GrowingResolvingBot(
        game, seat, config, growing=growing, seed=seed
    )


def _opponent(
    kind: str, game: pyspiel.Game, move_ms: float, seed: int
) -> tuple[pyspiel.Bot, int | None]:
    """A player for both seats, and how many simulations it makes."""
    if kind == "uniform":
        uniform = openspiel_policy.UniformRandomPolicy(game)
        return bots.PolicyBot(0, uniform, seed=seed), None
    state = game.new_initial_state()
    while state.is_chance_node():
        state.apply_action(state.chance_outcomes()[0][0])
    simulations, seconds = 50, 0.0
    # As many as take the time of a move; the first ones fill caches.
    while seconds < move_ms / 2000:
        simulations *= 2
        bot = _ismcts(game, simulations, seed)
        begun = time.perf_counter()
        bot.step(state.clone())
        seconds = time.perf_counter() - begun
    simulations = max(1, int(simulations * move_ms / 1000 / seconds))
    return _ismcts(game, simulations, seed), simulations


def _ismcts(game: pyspiel.Game, simulations: int, seed: int) -> pyspiel.Bot:
    """OpenSpiel's bot in Python: that in C++ plays neither of the games."""
    bot = ismcts.ISMCTSBot(
        game,
        _Playout(game, seed),
        uct_c=2.0,
        max_simulations=simulations,
        random_state=np.random.RandomState(seed),
    )
    bot.set_resampler(Worlds(game, seed))
    return bot


def markdown(rows: Sequence[Row]) -> str:
    """One table of results and one of conduct."""
    head = ["game", "player", "against", "matches", "mean return", "won", "drawn"]
    head += ["as player 0", "as player 1", "ms a move", "its ms a move"]
    head += ["its simulations"]
    body = [
        [
            *(row["name"], PLAYERS[row["player"]], OPPONENTS[row["opponent"]]),
            str(row["matches"]),
            f"{row['mean']:+.3f} ± {row['interval']:.3f}",
            *(f"{row['won']:.1%}", f"{row['drawn']:.1%}"),
            *(f"{mean:+.3f}" for mean in row["by_seat"]),
            *(f"{row['mean_ms']:.0f}", f"{row['opponent_ms']:.1f}"),
            "" if row["simulations"] is None else f"{row['simulations']:,}",
        ]
        for row in rows
    ]
    conduct = ["game", "player", "against", "moves", "late", "slowest, ms", "illegal"]
    conduct += ["programs compiled", *_WAYS]
    conduct += ["most histories", "peak memory, MB", "at start, MB"]
    how = [
        [
            *(row["name"], PLAYERS[row["player"]], OPPONENTS[row["opponent"]]),
            str(row["moves"]),
            "" if row["late_moves"] is None else str(row["late_moves"]),
            f"{row['max_ms']:.0f}",
            *(str(row["illegal_moves"]), str(row["programs_compiled"])),
            *(str(row["counts"][key]) for key in _WAYS),
            f"{row['most_histories']:,}",
            *(f"{row[key] / 1e6:,.0f}" for key in ("peak_bytes", "start_bytes")),
        ]
        for row in rows
    ]
    parts = [
        conditions.sentence(rows[0], (row["device"] for row in rows)),
        document.grid(head, body, labels=3),
        document.grid(conduct, how, labels=3),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
