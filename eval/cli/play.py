"""The command `play`: matches to watch, or to take part in.

bots, with their parameters in brackets:
{bots}
  human: you, at this terminal, or with --web in a page of your browser

The first bot is player 0 in the first match; seats are swapped from match to match.
You are shown what your player knows, and choose by the number or the name of an action;
q quits. With --web the page is for this machine only; Ctrl-C ends it. With --web alone
the page offers games, and bots of several strengths.

examples:
  spiel-cr play --web
  spiel-cr play --game leduc_poker --bots 'human;resolving(move_ms=200)'
  spiel-cr play --game leduc_poker --bots 'human;resolving(move_ms=200)' --web
"""

import signal
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from typing import TextIO

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_iterations
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import one_line
from spiel_cr.evaluation.referee import Observer
from spiel_cr.games.histories import state_after
from spiel_cr.games.tree.compiler import Game
from spiel_cr.players import bot_strings

from ..table import families, server, table
from ..table.series import HUMAN, Played, Series
from . import watchdog
from .command import Arguments, Commands, add_command, split_bots, whole_value

# Seconds that a bot's thread gets to end its move when the table is closed.
_LAST_MOVE = 1.0
# Seconds for a page to say that a bot failed.
_LAST_WORDS = 2.0
# Seconds between two looks for the end.
_POLL = 0.1


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "watch bots play matches, or play against one"
    parser = add_command(
        commands, "play", _play, text, __doc__, bots=bot_strings.describe_bots()
    )
    parser.bot_options("'A;B'", "see below", required=False)
    text = "of all that is drawn (default: another each time)"
    parser.add_argument("--seed", type=whole_value, help=text)
    parser.option("--matches", "how many (default 1; with --web until you leave)")
    text = "play in a page of the browser, which only this machine can open"
    parser.option("--web", text, action="store_true")
    text = "of the page, from 1024 to 65535 (default: one that is free)"
    parser.add_argument("--port", type=whole_value, metavar="N", help=text)
    text = "print the page's address, and do not open the browser"
    parser.option("--no-open", text, action="store_true")


def _play(arguments: Arguments) -> dict[str, object]:
    lobby = arguments.web and arguments.game is arguments.bots is None
    if not lobby and None in (arguments.game, arguments.bots):
        raise ValueError(
            "--game and --bots say what is played; give both, or --web alone, where "
            "games and bots are chosen in the page"
        )
    bots = [HUMAN] if lobby else split_bots(arguments.bots)
    _check_page(arguments, bots)
    if arguments.matches is not None:
        check_iterations(arguments.matches, name="matches")
    seed = arguments.seed
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0] >> 1)
    limit = arguments.memory_limit
    if arguments.web:
        laid: list[Series] = []

        def lay(game: str, *bots: str) -> Series:
            laid.append(Series(game, bots, seed=seed, memory_limit=limit))
            return laid[-1]

        serve(
            (lambda game, bot: lay(game, HUMAN, bot))
            if lobby
            else lay(arguments.game, *bots),
            matches=arguments.matches,
            port=arguments.port or 0,
            opens=not arguments.no_open,
        )
        if lobby:
            tables = [{"game": str(one.game), **one.report()} for one in laid]
            return {"tables": tables}
        (series,) = laid
    else:
        series = play(
            arguments.game,
            bots,
            seed=seed,
            matches=arguments.matches or 1,
            memory_limit=limit,
        )
    return {"game": arguments.game, "bots": bots, **series.report()}


def _check_page(arguments: Arguments, bots: Sequence[str]) -> None:
    """Refuses options of the page that do not go together."""
    port = arguments.port
    if port is not None and not 1024 <= port <= 65535:
        raise ValueError(f"--port={port} must lie from 1024 to 65535")
    if not arguments.web:
        if port is not None:
            raise ValueError(f"--port={port}: only the page has one; give --web, too")
        if arguments.no_open:
            raise ValueError("--no-open: only the page is opened; give --web, too")
    elif HUMAN not in bots:
        raise ValueError(
            f"--web: nobody plays in the page, --bots={';'.join(bots)!r}; write "
            f"'human;B'"
        )


def play(
    game: Game,
    bots: Sequence[str],
    *,
    seed: int,
    matches: int = 1,
    source: TextIO | None = None,
    out: TextIO | None = None,
    memory_limit: Limit = bot_strings.MEMORY_LIMIT,
) -> Series:
    """Plays matches that a person watches or takes part in, at a terminal.

    Args:
      game: OpenSpiel game string, game, or compiled game (with `observations=True`).
      bots: two strings for `load_bot`, one of which may be "human". They swap seats
        from match to match.
      seed: of chance and of all that bots draw.
      matches: how many.
      source: where the person's answers are read, a line each; None: stdin.
      out: where the match is shown; None: stdout.
      memory_limit: bytes, or a size like "3GB"; refuse bots that need the whole of a
        larger game.

    Returns:
      The matches that were played to the end.

    Raises:
      ValueError: not two bots, two persons, a bad bot, a game too large for it, or a
        bad seed or number of matches.
    """
    source, out = source or sys.stdin, out or sys.stdout
    check_iterations(matches, name="matches")
    series = Series(game, bots, seed=seed, memory_limit=memory_limit)
    # What refuses the game does so before anything is shown.
    for seat, bot in enumerate(series.seats(0)):
        if bot != HUMAN:
            series.bot(0, seat)
    print(f"{one_line(series.game)}, seed {seed}", file=out)
    for number in range(matches):
        seats = series.seats(number)
        if matches > 1:
            print(f"\nmatch {number + 1} of {matches}", file=out)
        # What the opponent does may be hidden from the person; what is not, is told.
        observers = [] if HUMAN in bots else [_shower(seats, out)]
        try:
            played = series.play(lambda seat: _Person(seat, source, out), observers)
        except table.LeaveError:
            print("\nyou left the match", file=out)
            break
        _print_result(series, played, out)
        if matches > 1:
            _print_score(series, bots, out)
    return series


def _shower(seats: tuple[str, str], out: TextIO) -> Observer:
    """Prints every move of two bots."""

    def show(state: pyspiel.State, player: int, action: int) -> None:
        who = "chance" if player < 0 else f"player {player}, {seats[player]}"
        print(f"{who}: {state.action_to_string(player, action)}", file=out)

    return show


def _print_result(series: Series, played: Played, out: TextIO) -> None:
    """Prints who won; to a person all that was hidden, too."""
    for seat, bot in enumerate(played.bots):
        print(
            f"player {seat}, {one_line(bot)}: {played.match.returns[seat]:+g}", file=out
        )
    if HUMAN not in played.bots:
        return
    state = state_after(series.game, played.match.actions)
    print("all moves:", file=out)
    for player, name in families.moves_of(state):
        who = "chance" if player < 0 else f"player {player}, {played.bots[player]}"
        print(f"  {who}: {name}", file=out)
    print("at the end:", file=out)
    for line in families.lines(state, played.bots.index(HUMAN), reveal=True):
        print(f"  {line}", file=out)


def _print_score(series: Series, bots: Sequence[str], out: TextIO) -> None:
    totals = ", ".join(
        f"{bot} {won:+g}" for bot, won in zip(bots, series.totals(), strict=True)
    )
    print(f"score after {len(series.played)}: {totals}", file=out)


def serve(
    series: Series | Callable[[str, str], Series],
    *,
    matches: int | None = None,
    port: int = 0,
    opens: bool = True,
) -> None:
    """Lets a person play in a page, until they leave it or Ctrl-C.

    Args:
      series: as of `Table`.
      matches: how many at most; None: no limit.
      port: of the page; 0: any that is free.
      opens: open the browser.

    Raises:
      ValueError: the port is not free, or what a bot raised in its thread.
    """
    laid = table.Table(series, matches=matches)
    with server.Server(laid, port=port) as serving:

        def run() -> None:
            laid.run()
            if laid.error is not None:
                # The page still asks what happened.
                time.sleep(_LAST_WORDS)
                serving.shutdown()

        bot = threading.Thread(target=run, daemon=True)
        bot.start()
        if isinstance(series, Series):
            print(f"{one_line(series.game)}, seed {series.seed}")
        print(f"the table: {serving.address}", flush=True)
        print("only this machine can open it; Ctrl-C ends it", file=sys.stderr)
        if opens:
            webbrowser.open(serving.address)
        try:
            serving.serve_forever(_POLL)
        except KeyboardInterrupt as stopped:
            print("the table is closed", file=sys.stderr)
            # Ctrl-C is how a person ends it; who sends another signal is told of it.
            if getattr(stopped, "number", signal.SIGINT) != signal.SIGINT:
                raise
            watchdog.accept_interrupt()
        finally:
            laid.close()
            bot.join(_LAST_MOVE)
    if laid.error is not None:
        raise laid.error


class _Person(pyspiel.Bot):
    """Asks a person, who sees what the player knows and nothing else."""

    def __init__(self, player: int, source: TextIO, out: TextIO) -> None:
        pyspiel.Bot.__init__(self)
        self._player, self._source, self._out = player, source, out

    def restart(self) -> None:
        print(f"you are player {self._player}; q quits", file=self._out)

    def inform_action(self, state: pyspiel.State, player: int, action: int) -> None:
        """Nothing to do: all information is in the next information state."""

    def step(self, state: pyspiel.State) -> int:
        legal = state.legal_actions()
        names = {action: families.name_of(state, action) for action in legal}
        games = {a: state.action_to_string(self._player, a) for a in legal}
        print(file=self._out)
        for name in families.opponents_moves(state, self._player):
            print(f"player {1 - self._player}: {name}", file=self._out)
        for line in families.lines(state, self._player):
            print(line, file=self._out)
        for action, name in names.items():
            print(f"  {action:>3}  {name}", file=self._out)
        while True:
            print("action: ", end="", file=self._out, flush=True)
            line = self._source.readline()
            answer = line.strip()
            # An empty line is an answer; no line is the end of the input.
            if not line or answer.lower() in ("q", "quit"):
                raise table.LeaveError
            chosen = _understand(answer, [*names.items(), *games.items()])
            if chosen is not None:
                return chosen
            print(
                f"{answer!r} is no legal action; write one of the numbers "
                f"{', '.join(map(str, names))} or a name beside them, or q to quit",
                file=self._out,
            )


def _understand(answer: str, names: Sequence[tuple[int, str]]) -> int | None:
    """The action of this number, or else of this name; None: there is none."""
    if answer.isdecimal() and int(answer) in dict(names):
        return int(answer)
    named = {action for action, name in names if name.lower() == answer.lower()}
    return named.pop() if len(named) == 1 else None
