"""The command `play`: one match, to watch or to take part in.

bots, with their parameters in brackets:
{bots}
  human: you, at this terminal

The first bot is player 0. You are shown what your player knows, and choose by the
number or the name of an action; q quits.

example:
  spiel-cr play --game leduc_poker --bots 'human;resolving(move_ms=200)'
"""

import argparse
import sys
from collections.abc import Sequence
from typing import TextIO

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_seed
from spiel_cr.common.memory import Limit
from spiel_cr.compilation.compiler import Game
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.players import bot_strings

from ..players.match import Match, play_match
from .command import Commands, add_command, bot_options, split_bots, whole_value

HUMAN = "human"


class _LeaveError(Exception):
    """The person wants to stop."""


def add(commands: Commands) -> None:
    """Adds the command."""
    text = "watch two bots play a match, or play against one"
    parser = add_command(
        commands, "play", _play, text, __doc__, bots=bot_strings.describe_bots()
    )
    bot_options(parser, "'A;B'", "see below")
    text = "of all that is drawn (default: another each time)"
    parser.add_argument("--seed", type=whole_value, help=text)


def _play(arguments: argparse.Namespace) -> dict[str, object]:
    bots = split_bots(arguments.bots)
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
    memory_limit: Limit = bot_strings.MEMORY_LIMIT,
) -> Match | None:
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
        raise ValueError(
            f"--bots={';'.join(bots)!r}: a match needs two bots; write 'A;B'"
        )
    if bots[0] == bots[1] == HUMAN:
        raise ValueError(
            f"--bots={';'.join(bots)!r}: at one terminal only one player can be a "
            f"person, or each would see what the other knows; give a bot a seat"
        )
    check_seed(seed)
    for bot in bots:
        if bot != HUMAN:
            bot_strings.check_bot(bot)
    instance = bot_strings.prepare(game, bots, memory_limit=memory_limit)
    named = instance.game if isinstance(instance, CompiledGame) else instance
    entropy = np.random.SeedSequence(seed)
    own = [int(word >> 1) for word in entropy.generate_state(2)]
    players = [
        _Person(seat, source, out)
        if bot == HUMAN
        else bot_strings.load_bot(bot, instance, seat, seed=own[seat])
        for seat, bot in enumerate(bots)
    ]
    print(f"{named}, seed {seed}", file=out)

    def show(state: pyspiel.State, player: int, action: int) -> None:
        who = "chance" if player < 0 else f"player {player}, {bots[player]}"
        print(f"{who}: {state.action_to_string(player, action)}", file=out)

    # What the opponent does may be hidden from the person; what is not, their next
    # information state says.
    observers = [] if HUMAN in bots else [show]
    try:
        match = play_match(
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
