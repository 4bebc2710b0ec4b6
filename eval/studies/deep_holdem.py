"""Study: the thesis on Deep CFR in limit hold'em, again, without its program's faults.

Checkpoints M10 ... M50 of Deep CFR meet each other and an honest player in sessions
with stacks. What the thesis specifies is kept: 50 iterations of 270 traversals for each
player, memories of 300,000 advantages. Networks have as many layers as there, of equal
width (there 512, 512 and 256), and from `--size 10` on that width; below, they and
their fits are smaller.

The thesis' own figures come from a program with faults, which the lines name: its later
checkpoints are no better than the first. So they stand beside ours without a verdict,
but for the 84 % that it won at most against the honest player: whether M50 wins more
than that has one, unless its interval spans 84 %. The other verdict is ours: that no
later checkpoint is significantly weaker than M10. A second run has four times the
traversals, for 270 are few in this game.
"""

import dataclasses
import itertools
import pathlib
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyspiel

import game_defs  # noqa: F401  registers the project's games
from spiel_cr.common import atomic
from spiel_cr.compilation.loading import load_game
from spiel_cr.deep.policy import DeepPolicy, load_deep_policy
from spiel_cr.players.bots import PolicyBot
from spiel_cr.responses.ismcts_br_bot import ISMCTSBRBot
from spiel_cr.responses.ismcts_config import SearchConfig
from spiel_cr.responses.local_best_response import LBRBot
from spiel_cr.responses.state_responder import StateResponder
from spiel_cr.solving.deep_game import DeepResult, solve_deep

from ..common.json_log import JsonLog, Record, read_lines
from ..common.statistics import mean_and_half_width
from ..players import sessions, styles
from ..players.match import play_match
from ..players.round_robin import Slot
from .study import Line, Study

_GAME = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=4,blind=2 1,firstPlayer=2 1 "
    "1 1,raiseSize=2 2 4 4,maxRaises=3 4 4 4,numSuits=4,numRanks=13,numHoleCards=2,"
    "numBoardCards=0 3 1 1)"
)
_SESSION = sessions.SessionConfig(stack=80, rounds=10)
_CHECKPOINTS = (10, 20, 30, 40, 50)
_HONEST = "honest(rollouts=100)"
_TRAVERSALS, _CAPACITY = 270, 300_000
# Times the traversals, in the second run.
_MORE = 4
# Wins of the first of 200 matches, in the thesis.
_WINS = {
    (20, 10): 101,
    (30, 10): 98,
    (40, 10): 63,
    (50, 10): 91,
    (30, 20): 107,
    (40, 20): 68,
    (50, 20): 86,
    (40, 30): 59,
    (50, 30): 76,
    (50, 40): 114,
}
_OF, _BEATEN = 200, 0.84
_SHORT = "by a faulty program"
_FAULTY = (
    f"{_SHORT}: one deal shared by all traversals of an iteration, a sign "
    "wrong where a player acts twice in a row, rewards of the whole pot, weights by "
    "depth, the newest visits in place of a sample"
)
_SEED = 1


@dataclasses.dataclass(frozen=True)
class _Plan:
    """How large a run is.

    Attributes:
      name: of its folder.
      traversals: per player and iteration.
      hidden: units of each of three hidden layers.
      steps: of a fit of advantages.
      average_steps: of the fit of an average network.
      iterations: between two checkpoints.
      sessions: of each pair.
      seconds: of each response to a checkpoint.
    """

    name: str
    traversals: int
    hidden: int
    steps: int
    average_steps: int
    iterations: int
    sessions: int
    seconds: float

    @property
    def algorithm(self) -> str:
        """The string that `solve` takes."""
        return (
            f"deep-cfr(traversals={self.traversals},hidden={self.hidden},layers=3,"
            f"steps={self.steps},batch=1024,capacity={_CAPACITY},"
            f"average_steps={self.average_steps})"
        )


def _plans(share: float) -> list[_Plan]:
    """As specified, and with more traversals."""
    whole = share >= 10
    fewer = min(1.0, share)
    return [
        _Plan(
            name=name,
            traversals=max(2, round(fewer * times * _TRAVERSALS)),
            hidden=512 if whole else 64,
            steps=4000 if whole else max(2, round(fewer * 100)),
            average_steps=20_000 if whole else max(2, round(fewer * 500)),
            iterations=max(1, round(fewer * 10)),
            sessions=2 * max(1, round(min(share, 5.0) * 20)),
            seconds=10 * share,
        )
        for name, times in (("specified", 1), ("more", _MORE))
    ]


def _run(share: float) -> Iterator[Line]:
    with tempfile.TemporaryDirectory() as name:
        yield from _run_in(share, name)


def _run_in(share: float, folder: atomic.Path) -> Iterator[Line]:
    """The lines; what is in the folder already is not computed again."""
    for plan in _plans(share):
        yield from _one(plan, pathlib.Path(folder) / plan.name)


def _one(plan: _Plan, folder: pathlib.Path) -> Iterator[Line]:
    """A run: training, sessions, responses."""
    settings = {"game": _GAME, "seed": _SEED, **dataclasses.asdict(plan)}
    with JsonLog(
        folder, "rows", {"study": "deep_holdem", **settings}, key=("kind", "name")
    ) as log:
        log.begin()
        paths = [_train(plan, folder, made, log) for made in _CHECKPOINTS]
        bots = [f"deep(path={path})" for path in paths]
        yield _training(plan, log)
        met = sessions.play_sessions(
            *(_GAME, [*bots, _HONEST], plan.sessions, _SESSION, folder / "sessions"),
            seed=_SEED,
        )
        records = read_lines(folder / "sessions" / "sessions.jsonl", Slot._fields)
        yield from _pairs(plan, met)
        yield _not_weaker(plan, met)
        yield from _honest(plan, met, records)
        yield from _styles(plan, records)
        for made in (_CHECKPOINTS[0], _CHECKPOINTS[-1]):
            path = paths[_CHECKPOINTS.index(made)]
            for method in ("lbr", "ismcts"):
                yield _response(plan, made, path, method, log)


def _train(plan: _Plan, folder: pathlib.Path, made: int, log: JsonLog) -> pathlib.Path:
    """A checkpoint's policy, trained where it is not there yet."""
    path = folder / f"M{made}.npz"
    key = "training", f"M{made}"
    if path.exists() and key in log.records:
        return path
    iterations = plan.iterations * (1 + _CHECKPOINTS.index(made))
    found = solve_deep(
        *(_GAME, plan.algorithm, iterations),
        compile="never",
        checkpoint_path=folder / "state.npz",
        # Half a gigabyte, when memories are full.
        checkpoint_every=300.0,
        seed=_SEED,
    )
    assert isinstance(found, DeepResult)
    found.save(path)
    log.add(
        {
            "kind": key[0],
            "name": key[1],
            "algorithm": found.algorithm,
            "iterations": found.iterations,
            "trajectories": found.trajectories,
            "nodes": found.nodes,
            "seconds": found.seconds,
        }
    )
    return path


def _named(plan: _Plan, made: int) -> str:
    return f"M{made}, {plan.traversals} traversals"


def _training(plan: _Plan, log: JsonLog) -> Line:
    last = log.records["training", f"M{_CHECKPOINTS[-1]}"]
    scaled = []
    if plan.hidden < 512:
        scaled.append(f"networks of {plan.hidden} units a layer")
    if plan.traversals < _TRAVERSALS or plan.iterations < 10:
        scaled.append("fewer traversals and iterations")
    if plan.traversals > _TRAVERSALS:
        scaled.append(f"{_MORE} times the traversals")
    said = f"; other than there: {', '.join(scaled)}" if scaled else ""
    return Line(
        f"training, {plan.traversals} traversals",
        "50 iterations × 270 traversals × 2, nets 512-512-256, memories of 300 k, "
        f"300 k and 600 k, {_FAULTY}",
        f"{last['iterations']} iterations, {last['trajectories']:,} traversals, "
        f"{last['nodes']:,} nodes, {last['seconds']:.0f} s{said}",
        None,
    )


def _interval(value: float | None, half_width: float | None, form: str) -> str:
    assert value is not None
    half = "?" if half_width is None else format(half_width, form)
    return f"{format(value, form)} ± {half}"


def _result(met: sessions.Sessions, i: int, j: int) -> str:
    """Of a row against a column."""
    return (
        f"wins {_interval(met.won[i][j], met.won_half_width[i][j], '.1%')} of "
        f"{met.sessions[i][j]} sessions, and "
        f"{_interval(met.chips[i][j], met.chips_half_width[i][j], '.3f')} chips per "
        f"hand in {met.hands[i][j]:,}"
    )


def _pairs(plan: _Plan, met: sessions.Sessions) -> Iterator[Line]:
    """All pairs of checkpoints, the later one first."""
    for early, late in itertools.combinations(range(len(_CHECKPOINTS)), 2):
        first, second = _CHECKPOINTS[late], _CHECKPOINTS[early]
        wins = _WINS[first, second]
        yield Line(
            f"M{first} against M{second}, {plan.traversals} traversals",
            f"wins {wins} of {_OF} matches ({wins / _OF:.1%}), {_SHORT}",
            _result(met, late, early),
            None,
        )


def _not_weaker(plan: _Plan, met: sessions.Sessions) -> Line:
    """Whether no later checkpoint loses to the first by more than chance explains.

    Of a few deals that says little: intervals are wide.
    """
    said, weaker = [], []
    for late in range(1, len(_CHECKPOINTS)):
        chips, half = met.chips[late][0], met.chips_half_width[late][0]
        said.append(f"M{_CHECKPOINTS[late]} {_interval(chips, half, '.3f')}")
        assert chips is not None
        weaker.append(None if half is None else chips + half < 0)
    known = True in weaker or None not in weaker
    return Line(
        "no later checkpoint is significantly weaker than M10, "
        f"{plan.traversals} traversals",
        f"they converge (Brown et al. 2019); the thesis' are weaker, {_SHORT}",
        f"chips per hand against M10, over {plan.sessions // 2} deals (95 % each, not "
        f"corrected for {len(said)} comparisons): {', '.join(said)}",
        True not in weaker if known else None,
    )


def _above(share: float, half_width: float | None, bound: float) -> bool | None:
    """Whether a share is above a bound; None: the interval does not say."""
    if half_width is None or abs(share - bound) <= half_width:
        return None
    return share > bound


def _honest(
    plan: _Plan, met: sessions.Sessions, records: dict[Any, Record]
) -> Iterator[Line]:
    """All checkpoints against the honest player."""
    column = len(_CHECKPOINTS)
    for row, made in enumerate(_CHECKPOINTS):
        won = hands = 0
        for record in records.values():
            if (record["row"], record["column"]) == (row, column):
                sign = -1 if record["swapped"] else 1
                won += sum(sign * own > 0 for own in record["returns"])
                hands += len(record["returns"])
        share = met.won[row][column]
        assert share is not None
        last = made == _CHECKPOINTS[-1]
        yield Line(
            f"{_named(plan, made)}, against the honest player",
            f"wins 80 to 84 % of matches, {_SHORT}; what a match is, is not known",
            f"{_result(met, row, column)}; wins {won / hands:.1%} of hands",
            _above(share, met.won_half_width[row][column], _BEATEN) if last else None,
        )


def _styles(plan: _Plan, records: dict[Any, Record]) -> Iterator[Line]:
    """How each bot plays, in all its sessions."""
    names = [*(f"M{made}" for made in _CHECKPOINTS), "the honest player"]
    found = styles.styles_of(_GAME, sessions.read_hands(records))
    for name, style in zip(names, found, strict=True):
        lines = styles.lines_of_styles([style])
        streets = "; ".join(" ".join(line.split()) for line in lines[1:])
        yield Line(
            f"how {name} plays, {plan.traversals} traversals",
            "drawn, not printed",
            f"{style.text}; {streets}",
            None,
        )


def _response(
    plan: _Plan, made: int, path: pathlib.Path, method: str, log: JsonLog
) -> Line:
    """What a response wins from a checkpoint: at least so much can be won from it."""
    key = method, f"M{made}"
    if key not in log.records:
        log.add({"kind": method, "name": key[1], **_respond(plan, path, method)})
    row = log.records[key]
    name = {"lbr": "local best response", "ismcts": "ISMCTS-BR"}[method]
    return Line(
        f"{_named(plan, made)}, against {name}",
        "none",
        f"loses {_interval(row['chips'], row['half_width'], '.2f')} chips per hand in "
        f"{row['hands']} hands, {row['seconds']:.0f} s",
        None,
    )


def _respond(plan: _Plan, path: pathlib.Path, method: str) -> dict[str, Any]:
    """Plays deals, each from both seats, until the time is over; at least one."""
    game = load_game(_GAME)
    policy = load_deep_policy(path, game)
    responders = [_responder(game, seat, policy, method) for seat in range(2)]
    players = [PolicyBot(seat, policy, seed=_SEED) for seat in range(2)]
    random = np.random.default_rng(_SEED)
    deals: list[float] = []
    started = time.perf_counter()
    while not deals or time.perf_counter() - started < plan.seconds:
        won = []
        for seat in range(2):
            bots: list[pyspiel.Bot] = [players[0], players[1]]
            bots[seat] = responders[seat]
            chance = np.random.default_rng([_SEED, len(deals)])
            won.append(play_match(game, bots, random, chance=chance).returns[seat])
        deals.append(sum(won) / 2)
    chips, half_width = mean_and_half_width(deals)
    return {
        "chips": chips,
        "half_width": half_width,
        "hands": 2 * len(deals),
        "seconds": time.perf_counter() - started,
    }


def _responder(
    game: pyspiel.Game, seat: int, policy: DeepPolicy, method: str
) -> StateResponder:
    if method == "lbr":
        return LBRBot(game, seat, policy, rollouts=100, seed=_SEED)
    config = SearchConfig(simulations=100)
    return ISMCTSBRBot(game, seat, policy, config, seed=_SEED)


STUDY = Study(
    "deep_holdem",
    "Deep CFR in limit hold'em: checkpoints against each other and an honest player",
    "a thesis on Deep CFR in limit hold'em; Brown et al. 2019, 'Deep counterfactual "
    "regret minimization'",
    _run,
    _run_in,
)
