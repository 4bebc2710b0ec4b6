"""The command `show`: look inside a policy file: probabilities, reach, values.

columns:
  own      probability that the player's actions lead to the information state
  others   probability that the actions of opponent and chance lead there
  value    counterfactual value under the policy: the player's utility from there on,
           weighted by `others`, in the game's units
  gain     additional utility of a best response from there on, with the same weight
  actions  name, probability, and the counterfactual value of the action

A policy that was solved with --form public-tree is shown at one public node, --node:
the probabilities of each hand. --html supports every policy, also those of games
without a game tree; --player, --find, --sort and --limit set the
initial state of its list of decisions.

examples:
  spiel-cr solve --game kuhn_poker --algorithm cfr+ --until 0.001 --save out/kuhn.npz
  spiel-cr show --policy out/kuhn.npz --game kuhn_poker
  spiel-cr show --policy out/kuhn.npz --game kuhn_poker --html out/kuhn.html
  spiel-cr show --policy out/kuhn.npz --game kuhn_poker --plot out/kuhn.svg
  spiel-cr solve --game python_leduc_poker --form public-tree --save out/leduc.npz
  spiel-cr show --policy out/leduc.npz --game python_leduc_poker --node 'check bet'
"""

import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, Literal

import spiel_cr
from spiel_cr.common import atomic
from spiel_cr.common.checks import check_iterations
from spiel_cr.common.errors import GameTooLargeError, TooManyHistoriesError
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce, number_text, one_line
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game, as_tree
from spiel_cr.poker import answers
from spiel_cr.policies.queries import query
from spiel_cr.solvers import policy_files

from ..common.plurals import counted
from ..inspection import hand_grid, infoset_view, spot_page, tree_drawing, tree_page
from ..reporting import plots
from .command import Arguments
from .spot import write_answers

LIST_LIMIT = 40


@dataclasses.dataclass(kw_only=True)
class ListOptions:
    """Options of the list of decisions.

    Attributes:
      player: Only information states of this player.
      find (TEXT): Only information states whose name or string contains this text.
      sort: Order: the game's, by reach of all players, or by own reach x gain (default
        game).
      limit: Maximum number of information states per player (default 40).
    """

    find: str | None = None
    player: int | None = dataclasses.field(default=None, metadata={"choices": (0, 1)})
    sort: Literal["game", "reach", "gain"] | None = None
    limit: int | None = None


# Options for policies that are shown at a public node.
_NODE = ("node", "board", "csv")
_LISTED = [field.name for field in dataclasses.fields(ListOptions)]


@dataclasses.dataclass(kw_only=True)
class ShowOptions(ListOptions):
    """Options of the command.

    Attributes:
      policy: File written with --save; not needed for a drawing of the game alone.
      html (FILE): Write a page to walk through, from the first decision on.
      node (ACTIONS): For policies solved with --form public-tree: actions of the
        players that lead to a public node, such as 'check bet', by the names or numbers
        of the game's actions (check also for call, bet also for raise, and the reverse,
        if the game has no such action); shown as a grid of hands (default: the first
        decision).
      board (CARDS): At this node: only hands with these public cards, such as '5c 9d'.
      plot: Draw the game tree, of up to 200 histories, with the probabilities and
        values of the policy if there is one; or the grid of hands (png, svg or pdf).
      csv (FILE): At this node of hold'em: write all hands with their weight in the
        range, equity, EV, and the probability of each action.
    """

    policy: atomic.Path | None = None
    game: str
    memory_limit: Limit = None
    html: atomic.Path | None = None
    node: str | None = None
    board: str | None = None
    plot: atomic.Path | None = None
    csv: atomic.Path | None = None


def run(arguments: Arguments) -> dict[str, object]:
    """Show a policy."""
    limit = LIST_LIMIT if arguments.limit is None else arguments.limit
    check_iterations(limit, name="limit")
    if arguments.policy is None:
        others = arguments.options("html", *_NODE, *_LISTED).values()
        if not arguments.plot or any(value is not None for value in others):
            raise ValueError(
                "--policy: no policy to show; write one with spiel-cr solve --save "
                "FILE, or draw the game alone with --plot FILE and no other option"
            )
        report: dict[str, object] = arguments.options("game")
        _draw_tree(arguments, arguments.game, None, report)
        return report
    if not pathlib.Path(arguments.policy).is_file():
        raise ValueError(
            f"policy={arguments.policy!r}: the file does not exist; write it with "
            f"spiel-cr solve --game '{arguments.game}' "
            f"--save {arguments.policy!r}"
        )
    file = policy_files.read_policy_file(arguments.policy)
    file.check()
    is_of_public_tree = file.is_of_public_tree
    if is_of_public_tree:
        problem = "applies only to policies of game trees (of this one, show a --node)"
        arguments.reject(ShowOptions, _LISTED, problem)
    else:
        problem = "applies only to policies solved with --form public-tree"
        arguments.reject(ShowOptions, _NODE, problem)
    needs_tree = file.needs_tree
    if not is_of_public_tree and (needs_tree or not arguments.html):
        large = () if needs_tree else (GameTooLargeError, TooManyHistoriesError)
        try:
            return _show_infosets(arguments, limit)
        except large as error:
            hint = "is too large for a list; --html FILE has the likeliest histories"
            raise type(error)(f"{arguments.game} {hint}") from error
    if is_of_public_tree:
        report = _show_grid(arguments)
    else:
        report = arguments.options("policy")
    if arguments.html:
        _write_page(arguments, _page(arguments), report)
    return report


def _draw_tree(
    arguments: Arguments, game: Game, policy: Any, report: dict[str, object]
) -> None:
    with arguments.writing("picture:", arguments.plot):
        tree_drawing.draw_tree(game, policy, arguments.plot)
        report["plot"] = arguments.plot


def _page(arguments: Arguments) -> str:
    """Return the page of a policy that needs no game tree; small games get one."""
    policy: Any = spiel_cr.load_policy(arguments.policy, arguments.game)
    reader = getattr(getattr(policy, "form", None), "reader", None)
    if getattr(reader, "range_weights", None) is not None:
        lead = hand_grid.title_of(policy.game)
        return spot_page.spot_page(policy, policy.form.sequence_form, lead)
    views: list[infoset_view.InfosetView] = []
    most = tree_page.MOST_HISTORIES
    with contextlib.suppress(GameTooLargeError, TooManyHistoriesError):
        tree = spiel_cr.build_tree(policy.game, max_histories=most)
        strategy = query(tree, policy)
        views = sum(infoset_view.view_infosets(tree, strategy), [])
    if arguments.sort == "gain" and not views:
        raise ValueError(
            "sort='gain': gains are not available for this policy; use --sort reach"
        )
    start = arguments.options(*_LISTED)
    return tree_page.tree_page(policy.game, policy, views, arguments.policy, start)


def _write_page(arguments: Arguments, page: str, report: dict[str, object]) -> None:
    if arguments.write_text(arguments.html, page):
        print(f"page: {one_line(arguments.html)}", file=sys.stderr)
        report["html"] = arguments.html


def _show_infosets(arguments: Arguments, limit: int) -> dict[str, object]:
    """Show a policy of a game with a game tree, as lines or as a page."""
    options = arguments.options("game", "memory_limit")
    tree = as_tree(observations=True, progress=True, **options)
    if arguments.plot:
        tree_drawing.check_size(tree)
    announce(f"loading the policy {arguments.policy}")
    policy = spiel_cr.load_policy(arguments.policy, tree)
    strategy = query(tree, policy)
    # Errors must be raised before anything is printed.
    announce("values of all information states")
    views = infoset_view.view_infosets(tree, strategy)
    chosen, left_off = [], 0
    for player, infosets in enumerate(views):
        if arguments.player in (None, player):
            matches = choose_infosets(tree, infosets, arguments.find, arguments.sort)
            # The page contains them, too.
            if not arguments.html:
                _print_player(tree, player, matches, limit)
            chosen += matches[:limit]
            left_off += len(matches[limit:])
    report: dict[str, object] = {
        "game": str(tree.game),
        "policy": arguments.policy,
        "infosets": [_as_json(tree, view) for view in chosen],
        # Infosets that --limit excludes.
        "left_off": left_off,
    }
    if arguments.plot:
        _draw_tree(arguments, tree, policy, report)
    if arguments.html:
        announce(f"making the page {arguments.html}")
        start, every = arguments.options(*_LISTED), sum(views, [])
        page = tree_page.tree_page(tree.game, policy, every, arguments.policy, start)
        _write_page(arguments, page, report)
    return report


def choose_infosets(
    tree: GameTree,
    views: Sequence[infoset_view.InfosetView],
    find: str | None,
    sort: str | None,
) -> list[infoset_view.InfosetView]:
    """Return the infosets whose name or string contains a text, in order."""
    matches = [
        view
        for view in views
        if find is None
        or find.lower() in f"{infoset_view.in_words(tree, view)[0]}\n{view.key}".lower()
    ]
    if sort == "reach":
        matches.sort(key=lambda view: -view.player_reach * view.others_reach)
    elif sort == "gain":
        matches.sort(key=lambda view: -view.player_reach * view.gain)
    return matches


def _print_player(
    tree: GameTree, player: int, views: Sequence[infoset_view.InfosetView], limit: int
) -> None:
    total = counted(len(tree.infosets[player]), "information state")
    print(f"player {player}: {len(views):,} of {total}")
    print(f"{'own':>10}{'others':>10}{'value':>11}{'gain':>10}  information state")
    # Values within rounding errors are printed as 0, for payoffs of any size.
    values = (action.value for view in views for action in view.actions)
    rounding = 1e-12 * max(map(abs, values), default=0.0)
    for view in views[:limit]:
        title, names = infoset_view.in_words(tree, view)
        reach, others = (
            number_text(each, ".4g") for each in (view.player_reach, view.others_reach)
        )
        value = number_text(view.value, ".4g", rounding)
        gain = number_text(max(view.gain, 0.0), ".4g", rounding)
        print(f"{reach:>10}{others:>10}{value:>11}{gain:>10}  {title}")
        actions = "   ".join(
            f"{name} {a.probability:.4f} ({number_text(a.value, '.4g', rounding)})"
            for name, a in zip(names, view.actions, strict=True)
        )
        print(f"{'':43}{actions}")
    if len(views) > limit:
        print(f"  ... {len(views) - limit:,} more; raise --limit, or use --find")
    print()


def _as_json(tree: GameTree, view: infoset_view.InfosetView) -> dict[str, object]:
    return {
        **view._asdict(),
        "name": infoset_view.in_words(tree, view)[0],
        "gain": view.gain,
        "actions": [action._asdict() for action in view.actions],
    }


def _show_grid(arguments: Arguments) -> dict[str, object]:
    """Print and draw the probabilities of a policy at a public node.

    Args:
      arguments: Arguments of the command, checked.

    Raises:
      ValueError: If the policy is of another game, or the node or board does not exist.
    """
    announce(f"loading the policy {arguments.policy}")
    policy: Any = spiel_cr.load_policy(arguments.policy, arguments.game)
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
                [hand_grid.with_suits(name) for name in grid.rows],
                [hand_grid.with_suits(name) for name in grid.columns],
                grid.actions,
                arguments.plot,
                title=f"{hand_grid.title_of(policy.game)}\n"
                f"{hand_grid.with_suits(arguments.board or '')} player {grid.player} "
                f"acts after {after}, probabilities in percent",
            )
            report["plot"] = arguments.plot
    return report
