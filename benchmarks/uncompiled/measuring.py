"""Games that are never compiled: memory, speed, met infosets, matches, responses.

Run `python -m benchmarks.uncompiled --help`. See docs/never-compiled.md for what is
measured.
"""

import argparse
import hashlib
import math
import pathlib
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import spiel_cr
from benchmarks.document import Column, interval, spaced, table
from benchmarks.frame import (
    Benchmark,
    Parser,
    Row,
    group_by,
    in_a_process,
    say,
    sentence,
)
from benchmarks.uncompiled import matches, peer
from spiel_cr.common import memory
from spiel_cr.common.memory import parse_size
from spiel_cr.eval.players.approximate_nash_conv import ResponseConfig, on_states
from spiel_cr.eval.players.exploiting import measured
from spiel_cr.responses.ismcts_config import SearchConfig
from spiel_cr.root_responses.players import TablePlayer
from spiel_cr.root_responses.setting import Setting
from spiel_cr.root_responses.table import TableResponder


class Plan(NamedTuple):
    """What is known of a game, and how it is sampled.

    Attributes:
      value: for player 0, published with a benchmark of policy gradients (2025) whose
        judge computes it exactly; goofspiel is symmetric.
      algorithms: of ours. Players of dark hex see how many moves there were and forget
        it, which exact averages do not allow.
    """

    value: float
    algorithms: tuple[str, ...] = ("os-mccfr", "vr-mccfr")


_SAMPLED = ("os-mccfr(averaging=sampled)",)
PLANS = {
    "phantom_ttt": Plan(0.6667),
    "dark_hex(board_size=3)": Plan(1.0, _SAMPLED),
    "goofspiel(num_cards=13,imp_info=True,points_order=descending)": Plan(0.0),
}
_PARTS = ("ours", "play", "response", "peer")


def _add_options(parser: Parser) -> None:
    parser.games(PLANS)
    parser.several("--parts", _PARTS, "what to measure; the last three read policies")
    words = "of ours, that sample (default: two, os-mccfr on dark hex)"
    parser.add_argument("--algorithms", nargs="+", default=None, help=words)
    parser.number("--seconds", 600.0, "of iterating, of each solver")
    words = "of each solver's process (default 4GB)"
    parser.add_argument("--memory-limit", default="4GB", help=words)
    parser.number("--matches", 10_000, "of each kind", least=4)
    parser.number("--response-seconds", 60.0, "of each search from the root")
    parser.number("--response-matches", 200, "of each search from beliefs", least=2)
    parser.number("--simulations", 300, "of each search from a belief")
    parser.number("--seed", 0, "of all that is drawn", least=0)
    folder = "out/benchmarks/uncompiled"
    words = f"keep policies here (default {folder})"
    parser.add_argument("--policies", default=folder, help=words)


def _measure(options: argparse.Namespace) -> Iterator[Row]:
    folder = pathlib.Path(options.policies)
    folder.mkdir(parents=True, exist_ok=True)
    for game in options.games:
        plan = PLANS.get(game, Plan(math.nan))
        algorithms = options.algorithms or plan.algorithms
        paths = {a: _path(folder, game, a) for a in algorithms}
        shared = {"game": game, "seed": options.seed}
        for part in options.parts:
            if part == "peer":
                continue
            for algorithm, path in paths.items():
                say(f"{game}: {part}, {algorithm}")
                work = {"ours": _ours, "play": _play, "response": _response}[part]
                found = in_a_process(work, game, algorithm, str(path), vars(options))
                yield {"part": part, **shared, "algorithm": algorithm, **found}
        if "peer" in options.parts:
            say(f"{game}: OpenSpiel's outcome sampling")
            found = in_a_process(
                *(peer.measure, game, options.seconds),
                parse_size(options.memory_limit),
                {a: str(path) for a, path in paths.items() if path.exists()},
                *(options.matches, options.seed),
            )
            yield {"part": "peer", **shared, "algorithm": "OpenSpiel", **found}


def _path(folder: pathlib.Path, game: str, algorithm: str) -> pathlib.Path:
    """Where a policy is kept."""
    name = hashlib.sha256(f"{game} {algorithm}".encode()).hexdigest()[:12]
    short = f"{game.partition('(')[0]}-{algorithm.partition('(')[0]}"
    return folder / f"{short}-{name}.npz"


def _ours(game: str, algorithm: str, path: str, options: Row) -> Row:
    """Samples, and keeps the policy."""
    cpu = time.process_time()
    result = spiel_cr.sample_uncompiled(
        game,
        algorithm,
        seconds=options["seconds"],
        seed=options["seed"],
        memory_limit=options["memory_limit"],
    )
    cpu = time.process_time() - cpu
    result.save(path)
    return {
        "policy": path,
        "iterations": result.iterations,
        "trajectories": result.trajectories,
        "solve_seconds": result.seconds,
        "cpu_seconds": cpu,
        "infosets": result.infosets,
        "known_share": result.known / max(result.met, 1),
        "full": result.full,
        "table_bytes": result.table_bytes,
        "peak_bytes": memory.peak_bytes(),
    }


def _play(game: str, algorithm: str, path: str, options: Row) -> Row:
    """Plays the policy against itself and against uniform play."""
    loaded = spiel_cr.load_game(game)
    policy = spiel_cr.load_policy(path, loaded)
    return matches.facts_of("our", loaded, policy, options["matches"], options["seed"])


def _response(game: str, algorithm: str, path: str, options: Row) -> Row:
    """Searches best responses, in each seat."""
    loaded = spiel_cr.load_game(game)
    policy = spiel_cr.load_policy(path, loaded)
    assert isinstance(policy, spiel_cr.TablePolicy)
    config = ResponseConfig(
        search=SearchConfig(simulations=options["simulations"]),
        matches=options["response_matches"],
        seed=options["seed"],
    )
    row: Row = {"simulations": options["simulations"]}
    setting = Setting(policy.source, None, TablePlayer(policy.strategy))
    for player in range(2):
        responder = TableResponder(setting, player, seed=options["seed"])
        responder.learn(options["response_seconds"])
        rooted = measured(loaded, responder, options["matches"], options["seed"])
        row |= {f"root_{player}_{k}": v for k, v in rooted._asdict().items()}
        row[f"root_{player}_infosets"] = responder.infosets
    for player in range(2):
        try:
            seat = on_states(loaded, player, policy, config)
        except (ValueError, MemoryError) as error:
            # Beliefs of some games are too large to enumerate.
            return {**row, "refused": str(error)}
        row[f"response_{player}"] = seat.matches_value
        row[f"response_{player}_half_width"] = seat.matches_half_width
    return row


def _markdown(rows: Sequence[Row]) -> str:
    """All tables; parts that were not measured are left out."""
    parts = group_by(rows, "part")
    text = [f"{sentence(rows[0], ['cpu'])}\n"]
    solved = [*parts.get("ours", []), *parts.get("peer", [])]
    if solved:
        text += [
            "Sampling; the peak is of the whole process. OpenSpiel's sampler has no "
            "limit of its own, and is stopped where its process has taken as much:\n",
            table(solved, _SOLVED, labels=2),
        ]
    played = [_named(row, "our") for row in parts.get("play", [])]
    played += [_named(row, "peer") for row in parts.get("peer", [])]
    if played:
        text += [
            "Matches of the average policy against itself and against uniform play; "
            "met: the share of its decisions at infosets of the table; informed: of "
            "those where it did not play uniformly:\n",
            table(played, _PLAYED, labels=2),
        ]
    if "response" in parts:
        text += [
            "Best responses by search, their mean return in each seat in matches that "
            "taught them nothing; a sum is a lower bound of NashConv up to the "
            "intervals. From the root: on a table of the responder's infosets. From "
            "beliefs: ISMCTS-BR on OpenSpiel's states, where beliefs have up to "
            "100 000 histories:\n",
            table(parts["response"], _RESPONSES, labels=2),
        ]
    against = [
        {"game": row["game"], "algorithm": name, **found}
        for row in parts.get("peer", [])
        for name, found in row["matches"].items()
    ]
    if against:
        columns: dict[str, Column] = {
            "game": "`{game}`",
            "algorithm": "`{algorithm}`",
            "return": lambda row: interval(row["mean"], row["half_width"]),
        }
        text += [
            "Our average policy against that of OpenSpiel's sampler, half of the "
            "matches in each seat:\n",
            table(against, columns, labels=2),
        ]
    return "\n".join(text)


def _named(row: Row, name: str) -> Row:
    """A row's facts without the name before them."""
    own = {key.removeprefix(f"{name}_"): value for key, value in row.items()}
    plan = PLANS.get(row["game"])
    return {**own, "oracle": None if plan is None else plan.value}


def _of(opponent: str) -> Column:
    return lambda row: interval(row[f"{opponent}_mean"], row[f"{opponent}_half_width"])


def _in_seat(name: str, mean: str) -> Column:
    return lambda row: interval(row[mean], row[f"{name}_half_width"])


_SOLVED: dict[str, Column] = {
    "game": "`{game}`",
    "algorithm": "`{algorithm}`",
    "trajectories": lambda row: spaced(row["trajectories"]),
    "per second": lambda row: spaced(row["trajectories"] / row["solve_seconds"]),
    "seconds": "{solve_seconds:.0f}",
    "CPU seconds": "{cpu_seconds:.0f}",
    "infosets": lambda row: spaced(row["infosets"]),
    "full": lambda row: "yes" if row["full"] else "no",
    "peak memory, GB": lambda row: f"{row['peak_bytes'] / 1e9:.2f}",
}
_PLAYED: dict[str, Column] = {
    "game": "`{game}`",
    "algorithm": "`{algorithm}`",
    "value": "{oracle:.4f}",
    "against itself": _of("itself"),
    "met": "{itself_met:.1%}",
    "informed": "{itself_informed:.1%}",
    "against uniform": _of("uniform"),
    "met then": "{uniform_met:.1%}",
    "informed then": "{uniform_informed:.1%}",
}
_RESPONSES: dict[str, Column] = {
    "game": "`{game}`",
    "algorithm": "`{algorithm}`",
    "from the root, as player 0": _in_seat("root_0", "root_0_mean"),
    "as player 1": _in_seat("root_1", "root_1_mean"),
    "sum": lambda row: f"{row['root_0_mean'] + row['root_1_mean']:+.2f}",
    "from beliefs, as player 0": _in_seat("response_0", "response_0"),
    "then as player 1": _in_seat("response_1", "response_1"),
    "sum then": lambda row: f"{row['response_0'] + row['response_1']:+.2f}",
}

BENCHMARK = Benchmark(
    "uncompiled",
    "Measure sampling of games that are never compiled, beside OpenSpiel's sampler.",
    _add_options,
    _measure,
    _markdown,
    page="never-compiled.md",
    group=lambda row: (row["part"], row["game"], row["algorithm"]),
)
