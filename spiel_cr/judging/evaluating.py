"""Players evaluated as often as wanted, in a folder that an evaluation goes on from.

*Traversing* asks a player at each of its infosets, *playing* where it is met in
matches; see the modules of these names. All that was asked or played is kept as lines
of JSON.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common import atomic, storage
from spiel_cr.common.announcing import announce, is_wanted
from spiel_cr.common.checks import check_choice, check_iterations, check_seed
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.json_log import JsonLog, Record, has_begun
from spiel_cr.common.memory import Limit
from spiel_cr.common.statistics import mean_and_half_width
from spiel_cr.games.tree.compiler import as_compiled
from spiel_cr.games.tree.fingerprints import fingerprint
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging import playing, python_judge, traversing
from spiel_cr.players import bot_strings
from spiel_cr.players.opponent_strings import signal_file

EVALUATORS = ("traversing", "playing")
# Of an evaluation that plays, where no number is given.
MATCHES = 1000


@dataclasses.dataclass(frozen=True)
class EvaluatorConfig:
    """How a player is evaluated.

    Attributes:
      evaluator: one of `EVALUATORS`.
      matches: of "playing", seats alternate; None: `MATCHES`.
      repeats: how many newly made bots are evaluated.
      seed: of the bots, and of the matches.
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
                    f"matches={self.matches} goes with --evaluator playing only; "
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
        return [match for match in range(count) if playing.seat_of(match) == seat]


class Evaluations(NamedTuple):
    """Evaluations of bots that were made alike.

    Attributes:
      repeats: one for each bot.
      mean: mean NashConv, see `traversing.summarise`.
      half_width: of the 95 % confidence interval around it; None with one bot.
    """

    repeats: list[traversing.Evaluation]
    mean: traversing.Evaluation
    half_width: float | None


def evaluate_repeatedly(
    game: str,
    bot: str,
    config: EvaluatorConfig,
    out: atomic.Path | None = None,
    *,
    memory_limit: Limit = None,
) -> Evaluations:
    """Evaluates bots; what is in the folder already is not asked or played again.

    Args:
      game: OpenSpiel game string.
      bot: a string for `load_bot`.
      config: how.
      out: folder, for `settings.json` and the lines; None: nothing is kept.
      memory_limit: refuse to compile larger games.

    Raises:
      GameTooLargeError: the game, or OpenSpiel's judge on it, takes too much memory.
      OSError: a line cannot be written.
      ValueError: a bad bot, or a folder with another evaluation in it.
    """
    # What is finished is shown again though the bot's file is gone.
    if not (out and has_begun(out, config.evaluator)):
        bot_strings.read_bot(bot)
    compiled = _compiled(game, bot, config.evaluator, memory_limit)
    python_judge.check_memory(compiled, memory_limit)
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
    ) as log:
        found = [
            _evaluated(compiled, bot, config, log, repeat)
            for repeat in range(config.repeats)
        ]
    half_width = mean_and_half_width([one.nash_conv for one in found])[1]
    return Evaluations(found, traversing.summarise(found), half_width)


def _evaluated(
    compiled: CompiledGame,
    name: str,
    config: EvaluatorConfig,
    log: JsonLog,
    repeat: int,
) -> traversing.Evaluation:
    """One bot in both seats; it is made where the log has not everything."""
    seed = _mix(config.seed, repeat)
    seats = []
    for seat in range(2):
        key, matches = (repeat, seat), config.matches_of(seat)
        keys = [(*key, match) for match in matches] if config.plays else [key]
        bot = None
        if not log.records.keys() >= set(keys):
            again = f", repeat {repeat + 1}" if repeat else ""
            announce(f"making the bot of seat {seat}{again}")
            bot = bot_strings.load_bot(compiled, name, seat, seed=_mix(seed, seat))
        if config.plays:
            seats.append(_play(compiled, bot, log, key, matches, seed))
        else:
            seats.append(_traverse(compiled, bot, log, key))
    announce("judging")
    return traversing.evaluate(compiled, (seats[0], seats[1]))


def _compiled(game: str, bot: str, evaluator: str, limit: Limit) -> CompiledGame:
    """The compiled game; where it is too large, what judges a policy of signals."""
    try:
        return as_compiled(
            game, observations=True, memory_limit=limit, progress=is_wanted()
        )
    except GameTooLargeError as error:
        path = signal_file(bot)
        if path is None:
            raise
        raise GameTooLargeError(
            f"--evaluator {evaluator} needs the compiled game: {error}. For "
            f"this policy exact NashConv needs no compiled game: spiel-cr "
            f"best-response --game '{game}' --policy {path} --method exact"
        ) from error


def _met(record: Record) -> playing.Met:
    row = {name: record[name] for name in playing.Met._fields}
    return playing.Met(**{**row, "work": traversing.Work(**row["work"])})


def _mix(seed: int, number: int) -> int:
    """A seed of 31 bits, unlike others."""
    mixed = np.random.SeedSequence([seed, number]).generate_state(1)[0]
    return int(mixed) >> 1


def _traverse(
    compiled: CompiledGame, bot: pyspiel.Bot | None, log: JsonLog, key: tuple[int, int]
) -> traversing.SeatStrategy:
    """A (repeat, seat); from the log where there is no bot."""
    if bot is not None:
        found = traversing.traverse(compiled, bot, progress=is_wanted())
        row = {"behaviour": found.behaviour.tolist(), "work": found.work._asdict()}
        log.add({"repeat": key[0], "seat": key[1], **row})
    row = log.records[key]
    met = np.ones(len(compiled.infosets[key[1]]), np.int64)
    work = traversing.Work(**row["work"])
    return traversing.SeatStrategy(np.array(row["behaviour"]), met, work)


def _play(
    compiled: CompiledGame,
    bot: pyspiel.Bot | None,
    log: JsonLog,
    key: tuple[int, int],
    matches: Sequence[int],
    seed: int,
) -> traversing.SeatStrategy:
    """The matches of a (repeat, seat); those in the log are not played."""
    shown = []
    for match in tqdm(matches, desc=f"seat {key[1]}", disable=not is_wanted()):
        if (*key, match) not in log.records:
            assert bot is not None
            met = playing.play(compiled, bot, match, seed=seed)
            row = {**met._asdict(), "work": met.work._asdict()}
            log.add({"repeat": key[0], **row})
        shown.append(_met(log.records[*key, match]))
    return playing.aggregate(compiled, key[1], shown)
