"""The command `play`: watch bots play matches, or play against one.

bots, with their parameters in brackets:
{bots}
  human: you, at this terminal, or with --web in a page of your browser

The first bot is player 0 in the first match; seats are swapped after each match. You
see what your player observes, and choose by the number or the name of an action; q
quits. With --web only this machine can open the page; Ctrl-C ends it. With --web alone
you choose games, and bots of several strengths, in the page.

examples:
  spiel-cr play --web
  spiel-cr play --game leduc_poker --bots 'human;resolving(move_ms=200)'
  spiel-cr play --game leduc_poker --bots 'human;resolving(move_ms=200)' --web
"""

import dataclasses
import signal
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Sequence
from typing import Any, TextIO

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_iterations
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import one_line
from spiel_cr.evaluation.referee import Observer
from spiel_cr.games.histories import state_after
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.player_specs import MEMORY_LIMIT
from spiel_cr.players.player_strings import describe_players

from ..table import families, server, table
from ..table.bot_beliefs import beliefs_during, has_beliefs, lines
from ..table.series import HUMAN, FinishedMatch, MatchSeries
from . import watchdog
from .command import Arguments, split_bots

LISTS = {"bots": describe_players()}
# Seconds for a bot's thread to end its move when the table is closed.
_LAST_MOVE = 1.0
# Seconds for a page to show that a bot failed.
_LAST_WORDS = 2.0
# Seconds between two checks for a closed page.
_POLL = 0.1


@dataclasses.dataclass(kw_only=True)
class PlayOptions:
    """Options of the command.

    Attributes:
      bots ('A;B'): Two bots, one of which may be human.
      memory_limit: Memory for game trees that bots need, such as 3GB.
      seed (N): Seed for all random choices (default: another one in each run).
      matches: Number of matches (default 1; with --web no limit).
      web: Play in a page of the browser, which only this machine can open.
      port: Port of the page, from 1024 to 65535 (default: any free port).
      no_open: Print the page's address, and do not open the browser.
      beliefs: After each match, print what re-solving and search bots believed at
        their moves.
    """

    game: str | None = None
    bots: str | None = None
    seed: int | None = None
    memory_limit: Limit = MEMORY_LIMIT
    matches: int | None = None
    web: bool = False
    port: int | None = None
    no_open: bool = False
    beliefs: bool = False


def run(arguments: Arguments) -> dict[str, object]:
    """Play matches."""
    lobby = arguments.web and arguments.game is arguments.bots is None
    if not lobby and None in (arguments.game, arguments.bots):
        raise ValueError(
            "--game and --bots are required; give both, or --web alone to choose games "
            "and bots in the page"
        )
    bots = [HUMAN] if lobby else split_bots(arguments.bots)
    _check_page(arguments, bots)
    if arguments.matches is not None:
        check_iterations(arguments.matches, name="matches")
    seed = arguments.seed
    if seed is None:
        seed = int(np.random.SeedSequence().generate_state(1)[0] >> 1)
    limits = arguments.options("memory_limit")
    if not arguments.web:
        matches = arguments.matches or 1
        limits["beliefs"] = arguments.beliefs
        series = play(arguments.game, bots, seed=seed, matches=matches, **limits)
        return {"game": arguments.game, "bots": bots, **series.report()}
    tables: list[MatchSeries] = []

    def open_table(game: str, *bots: str) -> MatchSeries:
        tables.append(MatchSeries(game, bots, seed=seed, **limits))
        return tables[-1]

    options: dict[str, Any] = {"matches": arguments.matches}
    options |= {"port": arguments.port or 0, "opens": not arguments.no_open}
    if lobby:
        serve(lambda game, bot: open_table(game, HUMAN, bot), **options)
        reports = [{"game": str(each.game), **each.report()} for each in tables]
        return {"tables": reports}
    serve(open_table(arguments.game, *bots), **options)
    return {"game": arguments.game, "bots": bots, **tables[0].report()}


def _check_page(arguments: Arguments, bots: Sequence[str]) -> None:
    """Check that the options of the page agree with each other."""
    port = arguments.port
    if port is not None and not 1024 <= port <= 65535:
        raise ValueError(f"--port={port} must be from 1024 to 65535")
    if not arguments.web:
        arguments.reject(PlayOptions, ["port", "no_open"], "requires --web", "add it")
    elif arguments.beliefs:
        raise ValueError("--beliefs: the review of --web shows beliefs; omit --beliefs")
    elif HUMAN not in bots:
        raise ValueError(
            f"--bots={';'.join(bots)!r}: --web needs a person as a player; use "
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
    memory_limit: Limit = MEMORY_LIMIT,
    beliefs: bool = False,
) -> MatchSeries:
    """Play matches that a person watches or takes part in, at a terminal.

    Args:
      game: OpenSpiel game string, game, or game tree (with `observations=True`).
      bots: Two strings for `load_bot`, one of which may be "human". They swap seats
        after each match.
      seed: Seed for all random choices of chance and of the bots.
      matches: Number of matches.
      source: Stream of the person's answers, one per line. If None, stdin.
      out: Stream to which the match is printed. If None, stdout.
      memory_limit: Memory limit for game trees that bots need: bytes, or a size such as
        "3GB".
      beliefs: Whether to print the beliefs of the bots after each match.

    Returns:
      The matches that were played to the end.

    Raises:
      ValueError: If there are not two bots, both are human, a bot is invalid or the
        game is too large for it, or the seed or the number of matches is invalid.
    """
    source, out = source or sys.stdin, out or sys.stdout
    check_iterations(matches, name="matches")
    series = MatchSeries(game, bots, seed=seed, memory_limit=memory_limit)
    # Bots that do not support the game raise before anything is printed.
    seated = enumerate(series.seats(0))
    players = [series.bot(0, seat) for seat, bot in seated if bot != HUMAN]
    if beliefs and not any(map(has_beliefs, players)):
        raise ValueError(
            f"--beliefs: none of the bots {';'.join(bots)!r} has beliefs; use a bot "
            f"such as 'resolving(iterations=100)', 'search(...)' or 'oos(...)'"
        )
    print(f"{one_line(series.game)}, seed {seed}", file=out)
    for number in range(matches):
        seats = series.seats(number)
        if matches > 1:
            print(f"\nmatch {number + 1} of {matches}", file=out)
        # A person sees the opponent's moves as far as they are observed.
        observers = [] if HUMAN in bots else [_move_printer(seats, out)]
        try:
            played = series.play(
                lambda seat: _TerminalPlayer(seat, source, out), observers
            )
        except table.LeaveError:
            print("\nyou left the match", file=out)
            break
        _print_result(series, played, out)
        if beliefs:
            _print_beliefs(series, played, out)
        if matches > 1:
            _print_score(series, bots, out)
    return series


def _move_printer(seats: tuple[str, str], out: TextIO) -> Observer:
    """Return a function that prints every move of two bots."""

    def print_move(state: pyspiel.State, player: int, action: int) -> None:
        name = "chance" if player < 0 else f"player {player}, {seats[player]}"
        print(f"{name}: {state.action_to_string(player, action)}", file=out)

    return print_move


def _print_result(series: MatchSeries, played: FinishedMatch, out: TextIO) -> None:
    """Print the returns, and for a person also the hidden information."""
    for seat, bot in enumerate(played.bots):
        print(f"player {seat}, {one_line(bot)}: {played.returns[seat]:+g}", file=out)
    if HUMAN not in played.bots:
        return
    state = state_after(series.game, played.match.actions)
    print("all moves:", file=out)
    for player, move in families.moves_of(state):
        name = "chance" if player < 0 else f"player {player}, {played.bots[player]}"
        print(f"  {name}: {move}", file=out)
    print("at the end:", file=out)
    for line in families.lines(state, played.bots.index(HUMAN), reveal=True):
        print(f"  {line}", file=out)


def _print_beliefs(series: MatchSeries, played: FinishedMatch, out: TextIO) -> None:
    """Print the beliefs of each bot at its moves."""
    for seat, bot in enumerate(played.bots):
        if bot == HUMAN:
            continue
        maker = series.bot(played.number, seat)
        for state, beliefs in beliefs_during(series.game, played.match, maker):
            moves = [name for player, name in families.moves_of(state) if player >= 0]
            after = f"after {', '.join(moves)}" if moves else "at its first move"
            print(f"player {seat} {after}:", file=out)
            for line in lines(state, beliefs):
                print(f"  {line}", file=out)


def _print_score(series: MatchSeries, bots: Sequence[str], out: TextIO) -> None:
    totals = ", ".join(
        f"{bot} {total:+g}" for bot, total in zip(bots, series.totals(), strict=True)
    )
    print(f"score after {len(series.played)}: {totals}", file=out)


def serve(
    series: MatchSeries | Callable[[str, str], MatchSeries],
    *,
    matches: int | None = None,
    port: int = 0,
    opens: bool = True,
) -> None:
    """Serve a page in which a person plays, until it is closed or Ctrl-C is pressed.

    Args:
      series: Matches, or a function that creates them, as for `MatchTable`.
      matches: Maximum number of matches. If None, unlimited.
      port: Port of the page; 0: any free port.
      opens: Whether to open the browser.

    Raises:
      ValueError: If the port is not free, or a bot raised it in its thread.
    """
    open_table = table.MatchTable(series, matches=matches)
    with server.Server(open_table, port=port) as serving:

        def run_table() -> None:
            open_table.run()
            if open_table.error is not None:
                # The page still requests the error.
                time.sleep(_LAST_WORDS)
                serving.shutdown()

        bot = threading.Thread(target=run_table, daemon=True)
        bot.start()
        if isinstance(series, MatchSeries):
            print(f"{one_line(series.game)}, seed {series.seed}")
        print(f"page: {serving.address}", flush=True)
        print(
            "only this machine can open the page; press Ctrl-C to end", file=sys.stderr
        )
        if opens:
            webbrowser.open(serving.address)
        try:
            serving.serve_forever(_POLL)
        except KeyboardInterrupt as stopped:
            print("the page is closed", file=sys.stderr)
            # Ctrl-C is the usual end; other signals are reported as interrupts.
            if getattr(stopped, "number", signal.SIGINT) != signal.SIGINT:
                raise
            watchdog.accept_interrupt()
        finally:
            open_table.close()
            bot.join(_LAST_MOVE)
    if open_table.error is not None:
        raise open_table.error


class _TerminalPlayer(pyspiel.Bot):
    """A person at a terminal, who sees what the player observes and nothing else."""

    def __init__(self, player: int, source: TextIO, out: TextIO) -> None:
        pyspiel.Bot.__init__(self)
        self._player, self._source, self._out = player, source, out

    def restart(self) -> None:
        print(f"you are player {self._player}; q quits", file=self._out)

    def inform_action(self, state: pyspiel.State, player: int, action: int) -> None:
        """Do nothing: all information is in the next information state."""

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
            # An empty string means the end of the input.
            if not line or answer.lower() in ("q", "quit"):
                raise table.LeaveError
            action = _find_action(answer, [*names.items(), *games.items()])
            if action is not None:
                return action
            print(
                f"{answer!r} is not a legal action; enter one of the numbers "
                f"{', '.join(map(str, names))} or the name of an action, or q to quit",
                file=self._out,
            )


def _find_action(answer: str, names: Sequence[tuple[int, str]]) -> int | None:
    """Return the action with this number or, if none has it, with this name."""
    if answer.isdecimal() and int(answer) in dict(names):
        return int(answer)
    named = {action for action, name in names if name.lower() == answer.lower()}
    return named.pop() if len(named) == 1 else None
