"""The command `show` for public-tree policies: a public node as a grid of hands."""

import re

import pyspiel

from spiel_cr.common.messages import announce, one_line
from spiel_cr.poker import answers
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.solvers.policy_files import load_policy

from ..common.plurals import counted
from ..inspection import hand_grid
from ..reporting import plots
from .command import Arguments
from .spot import write_answers

# Options of `show` that are about the infosets of a game tree.
_INFOSETS = {"player": None, "find": None, "sort": None, "limit": None}
# And those that are about a public node.
_NODE = {"node": None, "board": None, "plot": None, "csv": None}


def check(arguments: Arguments, is_of_public_tree: bool) -> None:
    """Check that no option belongs to the other kind of policy; nothing is loaded.

    Args:
      arguments: Arguments of the command.
      is_of_public_tree: Whether the policy is one of a game in public-tree form.

    Raises:
      ValueError: If an option belongs to the other kind.
    """
    for name, default in (_INFOSETS if is_of_public_tree else _NODE).items():
        value = getattr(arguments, name)
        if value == default:
            continue
        remedy = "of a compiled game; look at a public node with --node"
        if not is_of_public_tree:
            remedy = "solved with --form public-tree; leave it out"
        raise ValueError(f"--{name} {value} is for policies {remedy}")


def show(arguments: Arguments) -> dict[str, object]:
    """Print and draw the probabilities of a policy at a public node.

    Args:
      arguments: Arguments of the command, checked.

    Raises:
      ValueError: If the policy is of another game, or the node or board does not exist.
    """
    announce(f"loading the policy {arguments.policy}")
    policy = load_policy(arguments.policy, arguments.game)
    assert isinstance(policy, FormPolicy)
    grid = hand_grid.hand_grid(policy, arguments.node or "", arguments.board)
    after = " ".join(grid.path) or "the deal"
    title = f"after {after}: player {grid.player} in round {grid.round}"
    print(one_line(policy.game))
    print(f"{title}, {counted(len(grid.hands), 'hand')}")
    print(f"percentages of {', '.join(grid.actions)}\n")
    print(hand_grid.text_of(grid))
    report: dict[str, object] = {
        **arguments.options("policy"),
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
        hands = answers(policy, arguments.node or "")
        report["hands"] = hands.rows()
        write_answers(arguments, hands, report)
    if arguments.plot:
        with arguments.writing("\npicture:", arguments.plot):
            plots.plot_hands(
                grid.cells,
                [_named(name) for name in grid.rows],
                [_named(name) for name in grid.columns],
                grid.actions,
                arguments.plot,
                title=f"{titled(policy.game)}\n{_named(arguments.board or '')} "
                f"player {grid.player} acts after {after}, in per cent",
            )
            report["plot"] = arguments.plot
    return report


def titled(game: pyspiel.Game) -> str:
    """Return a game in a few words, with its board, pot and stacks."""
    values = game.get_parameters()
    facts = [f"{name} {values[name]}" for name in ("pot", "stack") if name in values]
    facts = [_named(str(values["board"])), *facts] if "board" in values else facts
    return ", ".join([game.get_type().long_name.removeprefix("Python "), *facts])


def _named(cards: str) -> str:
    """Return cards such as "5c9d" with symbols for suits."""
    suits = dict(zip("cdhs", "♣♦♥♠", strict=True))
    return re.sub(r"(?<=[\dTJQKA])[cdhs]", lambda suit: suits[suit[0]], cards)
