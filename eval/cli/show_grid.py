"""The command `show` for policies of signal games: a public node as a grid of hands."""

import pathlib
import re

import pyspiel

from spiel_cr.common import figures
from spiel_cr.common.messages import announce, one_line
from spiel_cr.poker import answers
from spiel_cr.policies.public_tree_policy import PublicTreePolicy
from spiel_cr.solvers.policy_files import load_policy

from ..common.plurals import counted
from ..inspection import hand_grid
from ..reporting import plots
from .command import Arguments
from .spot import write_answers

# Options of `show` that look at the infosets of a compiled game.
_INFOSETS = {"player": None, "find": None, "sort": None, "limit": None}
# And those that look at a public node.
_NODE = {"node": None, "board": None, "plot": None, "csv": None}


def check(arguments: Arguments, signals: bool) -> None:
    """Refuses options that belong to the other kind of policy; nothing is loaded.

    Args:
      arguments: of the command.
      signals: whether the policy is one of a signal game.

    Raises:
      ValueError: one does, or no picture can be drawn.
    """
    for name, default in (_INFOSETS if signals else _NODE).items():
        value = getattr(arguments, name)
        if value == default:
            continue
        remedy = "of a compiled game; look at a public node with --node"
        if not signals:
            remedy = "solved with --form public-tree; leave it out"
        raise ValueError(f"--{name} {value} is for policies {remedy}")
    if signals and arguments.plot:
        figures.check(arguments.plot)


def show(arguments: Arguments) -> dict[str, object]:
    """Prints, and draws, what a policy plays at a public node.

    Args:
      arguments: of the command, checked.

    Raises:
      ValueError: the policy is of another game, or there is no such node or board.
    """
    announce(f"taking the policy {arguments.policy}")
    policy = load_policy(arguments.policy, arguments.game)
    assert isinstance(policy, PublicTreePolicy)
    grid = hand_grid.hand_grid(policy, arguments.node or "", arguments.board)
    after = " ".join(grid.path) or "the deal"
    title = f"after {after}: player {grid.player} in round {grid.round}"
    print(one_line(policy.game))
    print(f"{title}, {counted(len(grid.hands), 'hand')}")
    print(f"percentages of {', '.join(grid.actions)}\n")
    print(hand_grid.text_of(grid))
    report: dict[str, object] = {
        **arguments.given("policy"),
        "game": str(policy.game),
        "node": grid.path,
        "player": grid.player,
        "round": grid.round,
        "actions": grid.actions,
        "hands": [
            {"hand": hand, "board": board, "probabilities": row}
            for hand, board, row in zip(
                grid.hands, grid.boards, grid.played.tolist(), strict=True
            )
        ],
    }
    if arguments.csv:
        found = answers(policy, arguments.node or "")
        report["hands"] = found.rows()
        with arguments.writing():
            write_answers(pathlib.Path(arguments.csv), found)
            print(f"\nhands: {one_line(arguments.csv)}")
            report["csv"] = arguments.csv
    if arguments.plot:
        with arguments.writing():
            plots.plot_hands(
                grid.cells,
                [_named(name) for name in grid.rows],
                [_named(name) for name in grid.columns],
                grid.actions,
                arguments.plot,
                title=f"{titled(policy.game)}\n{_named(arguments.board or '')} "
                f"player {grid.player} acts after {after}, in per cent",
            )
            print(f"\npicture: {one_line(arguments.plot)}")
            report["plot"] = arguments.plot
    return report


def titled(game: pyspiel.Game) -> str:
    """A game in a few words: what a poker player asks for first."""
    given = game.get_parameters()
    facts = [f"{name} {given[name]}" for name in ("pot", "stack") if name in given]
    facts = [_named(str(given["board"])), *facts] if "board" in given else facts
    return ", ".join([game.get_type().long_name.removeprefix("Python "), *facts])


def _named(cards: str) -> str:
    """Cards such as "5c9d" as they are drawn."""
    suits = dict(zip("cdhs", "♣♦♥♠", strict=True))
    return re.sub(r"(?<=[\dTJQKA])[cdhs]", lambda found: suits[found[0]], cards)
