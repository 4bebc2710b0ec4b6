"""Commands that play matches: `tournament` and `play`."""

import argparse
import sys
from collections.abc import Sequence
from typing import TextIO

import numpy as np
import pyspiel

import spiel_cr
from spiel_cr.compilation.compiler import Game
from spiel_cr.players import bot_strings

from ..players import match as matches
from ..players import tournament
from .command import Commands, add_command

_HUMAN = "human"

_BOTS_TEXT = f"""bots, with their parameters in brackets:
{bot_strings.describe_bots()}
"""

_TOURNAMENT_TEXT = f"""{_BOTS_TEXT}
Matches come in twos: the second is played with swapped seats, and chance draws from
the same numbers. Confidence intervals are computed over these twos. The same seed gives
the same matches where bots have a budget of iterations (and no memory of earlier
matches, as oos has).

--out is a folder: matches.jsonl, a line a match, written as soon as it is over;
table.csv, a line a pair; summary.json; settings.json. The same command again plays only
what is missing there, and a greater --matches adds to it.

example:
  spiel-cr tournament --game leduc_poker --matches 200 --out out/leduc \\
    --bots 'resolving(iterations=100);solved(solver=cfr+,iterations=1000);uniform'
"""

_PLAY_TEXT = f"""{_BOTS_TEXT}  {_HUMAN}: you, at this terminal

The first bot is player 0. You are shown what your player knows, and choose by the
number or the name of an action; q quits.

example:
  spiel-cr play --game leduc_poker --bots '{_HUMAN};resolving(move_ms=200)'
"""


class _LeaveError(Exception):
    """The person wants to stop."""


def add_commands(commands: Commands) -> None:
    """Adds the commands of this file."""
    text = "play a round robin between bots, with confidence intervals"
    parser = add_command(commands, "tournament", _tournament, text)
    _describe(parser, _TOURNAMENT_TEXT)
    parser.add_argument(
        "--bots", required=True, metavar="'A;B;C'", help="two or more, see below"
    )
    parser.add_argument(
        "--matches",
        type=int,
        default=100,
        metavar="N",
        help="matches of each pair, half in each seat (default %(default)s)",
    )
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="folder of the results"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of all that is drawn (default %(default)s)"
    )
    text = "watch two bots play a match, or play against one"
    parser = add_command(commands, "play", _play, text)
    _describe(parser, _PLAY_TEXT)
    parser.add_argument("--bots", required=True, metavar="'A;B'", help="see below")
    parser.add_argument(
        "--seed", type=int, help="of all that is drawn (default: another each time)"
    )


def _describe(parser: argparse.ArgumentParser, text: str) -> None:
    parser.epilog = text
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--game", required=True, help="OpenSpiel game string")
    parser.add_argument(
        "--memory-limit",
        metavar="SIZE",
        default=bot_strings.MEMORY_LIMIT,
        help="refuse bots that need the whole of a larger game (default %(default)s)",
    )


def _split(bots: str) -> list[str]:
    """The bots of --bots."""
    names = [name.strip() for name in bots.split(";")]
    if "" in names:
        raise ValueError(
            f"--bots={bots!r}: a bot is missing before or after a semicolon; "
            f"write 'A;B'"
        )
    return names


def _tournament(arguments: argparse.Namespace) -> dict[str, object]:
    bots = _split(arguments.bots)
    if _HUMAN in bots:
        raise ValueError(
            f"--bots={arguments.bots!r}: a tournament is for bots; "
            f"use `spiel-cr play` for {_HUMAN}"
        )
    if arguments.matches % 2:
        print(
            f"--matches {arguments.matches} is odd: {arguments.matches + 1} are "
            f"played, each deal in both seats",
            file=sys.stderr,
        )
    try:
        result = tournament.play_tournament(
            arguments.game,
            bots,
            arguments.matches,
            arguments.out,
            seed=arguments.seed,
            progress=True,
            memory_limit=arguments.memory_limit,
        )
    except KeyboardInterrupt:
        print(
            f"matches that are over are kept in {arguments.out}; "
            f"the same command plays the rest",
            file=sys.stderr,
        )
        raise
    print(f"{arguments.game}, seed {arguments.seed}, {result.matches[0][1]} ", end="")
    print("matches a pair; mean return of the row against the column,")
    print("with half the width of its 95 % confidence interval")
    _print_table(result)
    print(f"written to {arguments.out}")
    keys = ("bots", "mean", "half_width", "matches")
    return {key: getattr(result, key) for key in keys}


def _print_table(result: tournament.Tournament) -> None:
    cell = 20
    numbers = [f"[{number}]" for number in range(1, len(result.bots) + 1)]
    print("    " + "".join(f"{number:>{cell}}" for number in numbers))
    for number, mean, half_width in zip(
        numbers, result.mean, result.half_width, strict=True
    ):
        texts = [
            "-" if m is None else f"{m:+.4f} ± {'?' if h is None else f'{h:.4f}'}"
            for m, h in zip(mean, half_width, strict=True)
        ]
        print(f"{number:<4}" + "".join(f"{text:>{cell}}" for text in texts))
    print(
        f"\n{'':4}{'moves':>9}{'mean ms':>10}{'max ms':>10}{'late':>7}{'compiled':>10}"
    )
    for number, effort in zip(numbers, result.efforts, strict=True):
        late = "-" if effort.late_moves is None else effort.late_moves
        print(
            f"{number:<4}{effort.moves:>9,}{effort.mean_ms:>10.2f}{effort.max_ms:>10.1f}"
            f"{late:>7}{effort.programs_compiled:>10}  {effort.bot}"
        )


def _play(arguments: argparse.Namespace) -> dict[str, object]:
    bots = _split(arguments.bots)
    seed = arguments.seed
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0] >> 1)
    match = play(arguments.game, bots, seed=seed, memory_limit=arguments.memory_limit)
    return {
        "game": arguments.game,
        "bots": bots,
        "seed": seed,
        "actions": None if match is None else match.actions,
        "returns": None if match is None else match.returns,
    }


def play(
    game: Game,
    bots: Sequence[str],
    *,
    seed: int,
    source: TextIO | None = None,
    out: TextIO | None = None,
    memory_limit: int | str | None = bot_strings.MEMORY_LIMIT,
) -> matches.Match | None:
    """Plays a match that a person watches or takes part in.

    Args:
      game: OpenSpiel game string, game, or compiled game (with `observations=True`).
      bots: two strings for `load_bot`, one of which may be "human".
      seed: of chance and of all that bots draw.
      source: where the person's answers are read, a line each; None: stdin.
      out: where the match is shown; None: stdout.
      memory_limit: bytes, or a size like "3GB"; refuse bots that need the whole of a
        larger game.

    Returns:
      The match, or None if the person left it.

    Raises:
      ValueError: not two bots, two persons, a bad bot, a game too large for it, or a
        bad seed.
    """
    source, out = source or sys.stdin, out or sys.stdout
    if len(bots) != 2:
        raise ValueError(f"--bots={';'.join(bots)!r}: a match needs two bots")
    if bots[0] == bots[1] == _HUMAN:
        raise ValueError(
            f"--bots={';'.join(bots)!r}: at one terminal only one player can be a "
            f"person, or each would see what the other knows"
        )
    if seed < 0:
        raise ValueError(f"--seed={seed} must be 0 or more")
    instance = bot_strings.prepare(game, bots, memory_limit=memory_limit)
    named = instance.game if isinstance(instance, spiel_cr.CompiledGame) else instance
    entropy = np.random.SeedSequence(seed)
    own = [int(word >> 1) for word in entropy.generate_state(2)]
    players = [
        _Person(seat, source, out)
        if bot == _HUMAN
        else spiel_cr.load_bot(bot, instance, seat, seed=own[seat])
        for seat, bot in enumerate(bots)
    ]
    print(f"{named}, seed {seed}", file=out)

    def show(state: pyspiel.State, player: int, action: int) -> None:
        who = "chance" if player < 0 else f"player {player}, {bots[player]}"
        print(f"{who}: {state.action_to_string(player, action)}", file=out)

    # What the opponent does may be hidden from the person; what is not, their next
    # information state says.
    observers = [] if _HUMAN in bots else [show]
    try:
        match = matches.play_match(
            instance, players, np.random.default_rng(entropy), observers=observers
        )
    except _LeaveError:
        print("\nyou left the match", file=out)
        return None
    for seat, bot in enumerate(bots):
        print(f"player {seat}, {bot}: {match.returns[seat]:+g}", file=out)
    return match


class _Person(pyspiel.Bot):
    """Asks a person, who sees what the player knows and nothing else."""

    def __init__(self, player: int, source: TextIO, out: TextIO) -> None:
        pyspiel.Bot.__init__(self)
        self._player = player
        self._source = source
        self._out = out

    def restart(self) -> None:
        print(f"you are player {self._player}; q quits", file=self._out)

    def inform_action(self, state: pyspiel.State, player: int, action: int) -> None:
        """Nothing to do: all information is in the next information state."""

    def step(self, state: pyspiel.State) -> int:
        names = {
            action: state.action_to_string(self._player, action)
            for action in state.legal_actions()
        }
        print(f"\n{state.information_state_string(self._player)}", file=self._out)
        for action, name in names.items():
            print(f"  {action:>3}  {name}", file=self._out)
        while True:
            print("action: ", end="", file=self._out, flush=True)
            line = self._source.readline()
            answer = line.strip()
            # An empty line is an answer; no line is the end of the input.
            if not line or answer.lower() in ("q", "quit"):
                raise _LeaveError
            chosen = _understand(answer, names)
            if chosen is not None:
                return chosen
            print(
                f"{answer!r} is no legal action; write one of the numbers "
                f"{', '.join(map(str, names))} or a name beside them, or q to quit",
                file=self._out,
            )


def _understand(answer: str, names: dict[int, str]) -> int | None:
    """The action of this number, or else of this name; None: there is none."""
    if answer.isdecimal() and int(answer) in names:
        return int(answer)
    named = [a for a, name in names.items() if name.lower() == answer.lower()]
    return named[0] if len(named) == 1 else None
