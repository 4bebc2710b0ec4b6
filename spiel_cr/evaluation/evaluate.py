"""Players evaluated as often as wanted, in a folder that an evaluation goes on from.

*Traversing* asks a player at each of its infosets, *playing* where it is met in
matches; see the modules of these names. All that was asked or played is kept as lines
of JSON.
"""

import dataclasses
import itertools
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.common import atomic, storage
from spiel_cr.common import record_checks as checks
from spiel_cr.common.announcing import announce, is_wanted
from spiel_cr.common.checks import check_choice, check_iterations, check_seed
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.executing import HERE, Executor
from spiel_cr.common.json_log import JsonLog, Record, has_begun
from spiel_cr.common.memory import Limit
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.evaluation import openspiel_evaluator, traversal
from spiel_cr.evaluation.opponent import build_for_evaluation, load_target
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.tree.compiler import Game, as_tree
from spiel_cr.games.tree.fingerprints import fingerprint
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players import bot_strings
from spiel_cr.players.bot_strings import is_bot, read_bot
from spiel_cr.players.given_players import (
    GivenPlayer,
    check_order,
    read_policy,
    seat_bot,
)
from spiel_cr.players.opponent_strings import public_tree_file
from spiel_cr.policies import best_responses, conversions

EVALUATORS = ("traversing", "playing")
# Of an evaluation that plays, where no number is given.
MATCHES = 1000
# What lines hold of all players, of those that are asked, and of those that play.
_LINE: dict[str, checks.Test] = {
    "repeat": checks.is_whole,
    "seat": lambda value: checks.is_whole(value) and value < 2,
    "work": checks.is_table(checks.is_duration),
}
_ASKED: dict[str, checks.Test] = {"behaviour": checks.is_list(checks.is_duration)}
_PLAYED: dict[str, checks.Test] = {
    "match": checks.is_whole,
    "keys": checks.is_list(checks.is_text),
    "policies": checks.is_list(checks.is_list(checks.is_duration)),
    "utility": checks.is_number,
}
# Of the probabilities of an answer, which were divided by their sum.
_SUM_TOLERANCE = 1e-9


@dataclasses.dataclass(frozen=True)
class EvaluatorConfig:
    """Settings of the evaluation of a bot.

    Attributes:
      evaluator: Method of the evaluation: one of `EVALUATORS`.
      matches: Number of matches of the evaluator playing, half of them as each player.
        If None, `MATCHES`.
      repeats: Number of newly made bots that are evaluated. NashConv is their mean,
        with the half-width of its 95% confidence interval.
      seed: Seed of the bots and of the matches.
    """

    evaluator: str = "traversing"
    matches: int | None = None
    repeats: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        check_choice(self.evaluator, "evaluator", EVALUATORS)
        if self.matches is not None:
            if not self.plays:
                raise ValueError(
                    f"matches={self.matches} goes with --method matches only; "
                    f"{self.evaluator} asks at every infoset, so leave --matches out"
                )
            check_iterations(self.matches, name="matches")
        check_iterations(self.repeats, name="repeats")
        check_seed(self.seed)

    @property
    def plays(self) -> bool:
        """Whether matches are played."""
        return self.evaluator == "playing"

    def matches_of(self, seat: int) -> list[int]:
        """The numbers of the matches in which the player has this seat."""
        count = MATCHES if self.matches is None else self.matches
        return [match for match in range(count) if traversal.seat_of(match) == seat]


class Evaluations(NamedTuple):
    """Evaluations of bots that were made alike.

    Attributes:
      repeats: one for each bot.
      mean: mean NashConv, see `traversal.summarise`.
      half_width: of the 95 % confidence interval around it; None with one bot.
    """

    repeats: list[traversal.Evaluation]
    mean: traversal.Evaluation
    half_width: float | None


def evaluate_repeatedly(
    game: str,
    bot: str,
    config: EvaluatorConfig,
    out: atomic.Path | None = None,
    *,
    memory_limit: Limit = None,
    executor: Executor = HERE,
) -> Evaluations:
    """Evaluates bots; what is in the folder already is not asked or played again.

    Args:
      game: OpenSpiel game string.
      bot: a string for `load_bot`.
      config: how.
      out: folder, for `settings.json` and the lines; None: nothing is kept.
      memory_limit: refuse to compile larger games.
      executor: where bots are asked.

    Raises:
      GameTooLargeError: the game, or OpenSpiel's judge on it, takes too much memory.
      OSError: a line cannot be written.
      ValueError: a bad bot, or a folder with another evaluation in it.
    """
    # What is finished is shown again though the bot's file is gone.
    if not (out and has_begun(out, config.evaluator)):
        bot_strings.read_bot(bot)
    compiled = _compiled(game, bot, config.evaluator, memory_limit)
    if not openspiel_evaluator.is_too_deep(compiled):  # otherwise spiel_cr evaluates
        openspiel_evaluator.check_memory(compiled, memory_limit)
    settings = {
        "game": str(compiled.game),
        "bot": bot,
        "seed": config.seed,
        "fingerprint": fingerprint(compiled),
        "versions": storage.versions(),
    }
    with JsonLog(
        out,
        config.evaluator,
        settings,
        key=("repeat", "seat", "match") if config.plays else ("repeat", "seat"),
        check=_line_check(compiled, config.plays),
    ) as log:
        keys = list(_keys(config))
        left = [key for key in keys if key not in log.records]
        asked = executor.map(
            _Asked, (compiled, bot, config.seed, executor.is_here), {k: k for k in left}
        )
        shown = config.plays and is_wanted()
        for _, record in tqdm(asked, "matches", len(left), disable=not shown):
            log.add(record)
        log.arrange(keys)
        found = [_judged(compiled, config, log, r) for r in range(config.repeats)]
    half_width = mean_and_half_width([one.nash_conv for one in found])[1]
    return Evaluations(found, traversal.summarise(found), half_width)


def _keys(config: EvaluatorConfig) -> Iterator[tuple[int, ...]]:
    """Of all lines: (repeat, seat), or (repeat, seat, match)."""
    for repeat, seat in itertools.product(range(config.repeats), range(2)):
        if config.plays:
            yield from ((repeat, seat, match) for match in config.matches_of(seat))
        else:
            yield repeat, seat


class _Asked:
    """Bots that are asked, or play; each (repeat, seat) has its own."""

    def __init__(
        self, compiled: GameTree, name: str, seed: int, progress: bool
    ) -> None:
        self._compiled, self._name, self._seed = compiled, name, seed
        self._progress = progress and is_wanted()
        self._bot: tuple[tuple[int, int], pyspiel.Bot] | None = None

    def __call__(self, key: tuple[int, ...]) -> Record:
        """The line of a key."""
        compiled, (repeat, seat, *match) = self._compiled, key
        seed = _mix(self._seed, repeat)
        if self._bot is None or self._bot[0] != (repeat, seat):
            again = f", repeat {repeat + 1}" if repeat else ""
            announce(f"making the bot of seat {seat}{again}")
            own = _mix(seed, seat)
            bot = bot_strings.load_bot(compiled, self._name, seat, seed=own)
            self._bot = (repeat, seat), bot
        bot = self._bot[1]
        if match:
            met = traversal.play(compiled, bot, match[0], seed=seed)
            row = {**met._asdict(), "work": met.work._asdict()}
        else:
            found = traversal.traverse(compiled, bot, progress=self._progress)
            row = {"behaviour": found.behaviour.tolist(), "work": found.work._asdict()}
        return {"repeat": repeat, "seat": seat, **row}


def _judged(
    compiled: GameTree, config: EvaluatorConfig, log: JsonLog, repeat: int
) -> traversal.Evaluation:
    """One bot in both seats, by its lines."""
    seats = []
    for seat in range(2):
        if config.plays:
            keys = [(repeat, seat, match) for match in config.matches_of(seat)]
            shown = [_met(log.records[key]) for key in keys]
            seats.append(traversal.aggregate(compiled, seat, shown))
            continue
        row = log.records[repeat, seat]
        met = np.ones(len(compiled.infosets[seat]), np.int64)
        work = traversal.Work(**row["work"])
        behaviour = np.array(row["behaviour"])
        seats.append(traversal.SeatStrategy(behaviour, met, work))
    announce("judging")
    return traversal.evaluate(compiled, (seats[0], seats[1]))


def _compiled(game: str, bot: str, evaluator: str, limit: Limit) -> GameTree:
    """The compiled game; where it is too large, what judges a policy of signals."""
    try:
        return as_tree(
            game, observations=True, memory_limit=limit, progress=is_wanted()
        )
    except GameTooLargeError as error:
        path = public_tree_file(bot)
        if path is None:
            raise
        raise GameTooLargeError(
            f"--evaluator {evaluator} needs the compiled game: {error}. For "
            f"this policy exact NashConv needs no compiled game: spiel-cr "
            f"best-response --game '{game}' --policy {path} --method exact"
        ) from error


def _line_check(compiled: GameTree, plays: bool) -> Callable[[Record], None]:
    """What raises ValueError where a line is no result of this game."""
    decisions = [infosets.decisions for infosets in compiled.infosets]
    actions = [
        dict(zip(infosets.keys, own.num_actions.tolist(), strict=True)) if plays else {}
        for infosets, own in zip(compiled.infosets, decisions, strict=True)
    ]

    def check(record: Record) -> None:
        checks.check_fields(record, _LINE | (_PLAYED if plays else _ASKED))
        if set(record["work"]) != set(traversal.Work._fields):
            raise ValueError(f"has work other than {traversal.Work._fields}")
        seat = record["seat"]
        sums = []
        if plays:
            policies = record["policies"]
            sizes = [actions[seat].get(key) for key in record["keys"]]
            fits = sizes == [len(policy) for policy in policies]
            fits = fits and traversal.seat_of(record["match"]) == seat
            sums = [sum(policy) for policy in policies]
        else:
            behaviour, own = record["behaviour"], decisions[seat]
            fits = len(behaviour) == own.num_sequences
            if fits:
                sums = [behaviour[0], *np.bincount(own.owner[1:], behaviour[1:])]
        if not fits or any(abs(total - 1) > _SUM_TOLERANCE for total in sums):
            raise ValueError(
                f"has no probabilities of player {seat} of {compiled.game}"
            )

    return check


def _met(record: Record) -> traversal.Met:
    row = {name: record[name] for name in traversal.Met._fields}
    return traversal.Met(**{**row, "work": traversal.Work(**row["work"])})


def _mix(seed: int, number: int) -> int:
    """A seed of 31 bits, unlike others."""
    mixed = np.random.SeedSequence([seed, number]).generate_state(1)[0]
    return int(mixed) >> 1


def evaluate(
    game: Game,
    bot: GivenPlayer,
    *,
    seed: int = 0,
    memory_limit: Limit = None,
    progress: bool = False,
) -> traversal.Evaluation:
    """Asks a player at every infoset of both seats, and judges what it answers exactly.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      bot: a string such as "resolving(iterations=100)", a policy, a result of `solve`,
        or a function of (player, seed) that makes a bot.
      seed: of what the bots draw.
      memory_limit: refuse to compile larger games, as in `solve`.
      progress: show progress bars on stderr.

    Returns:
      NashConv in the game's units, and what the answers cost.

    Raises:
      GameTooLargeError: the game does not fit; play matches instead.
      ValueError: no player, one bot for both seats, a bot without `get_policy`, or the
        arguments are exchanged.
    """
    check_order(game, bot, "evaluate(game, bot)")
    check_seed(seed)
    if isinstance(bot, pyspiel.Bot):
        raise ValueError(
            f"bot: a {type(bot).__name__} sits in one seat, and both are evaluated; "
            f"give a function of (player, seed) that makes one, or a string"
        )
    if isinstance(bot, str) and is_bot(bot):
        read_bot(bot)
    if isinstance(game, GameTree):
        tree: GameTree | PhantomGame = game
    else:
        tree = build_for_evaluation(open_game(game), memory_limit)
    if isinstance(tree, PhantomGame):
        return _evaluate_phantom_game(game, bot, seed, memory_limit)
    if not isinstance(bot, str) and (policy := read_policy(bot, tree.game)) is not None:
        return traversal.evaluate(tree, _queried(tree, policy))
    first, second = (
        traversal.traverse(
            tree,
            seat_bot(bot, tree, seat, seed=seed, name="bot"),
            seat,
            progress=progress,
        )
        for seat in range(2)
    )
    return traversal.evaluate(tree, (first, second))


def _queried(
    tree: GameTree, policy: openspiel_policy.Policy
) -> tuple[traversal.SeatStrategy, traversal.SeatStrategy]:
    """Query a policy at all infosets of both players, and check its answers."""
    start = time.perf_counter()
    behaviours = conversions.behaviour_from_policy(tree, policy)
    seconds = (time.perf_counter() - start) / 2
    first, second = (
        traversal.SeatStrategy(
            behaviour,
            np.ones(len(infosets), np.int64),
            traversal.Work(len(infosets), seconds=seconds),
        )
        for behaviour, infosets in zip(behaviours, tree.infosets, strict=True)
    )
    return first, second


def _evaluate_phantom_game(
    game: Game, bot: GivenPlayer, seed: int, memory_limit: Limit
) -> traversal.Evaluation:
    """A player of a large hidden-board game; a bot by what it answers."""
    begun = time.perf_counter()
    target = load_target(bot, game, seed=seed, memory_limit=memory_limit)
    behaviour = target.strategy()
    seconds = time.perf_counter() - begun
    assert target.form is not None
    low, high = best_responses.value_bounds(target.form, behaviour)
    infosets = sum(map(len, target.form.decisions))
    return traversal.Evaluation(
        nash_conv=high - low,
        infosets=infosets,
        infosets_defined=infosets,
        moves=infosets,
        seconds=seconds,
        judge="spiel_cr",
    )
