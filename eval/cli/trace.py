"""The command `trace`: show CFR step by step: reach, values, regrets and strategies.

columns:
  own       probability that the player's actions lead to the information state
  others    probability that the actions of opponent and chance lead there
  strategy  probability of the action in this iteration
  value     counterfactual value: the player's utility, weighted by `others`
  regret    value of the action minus that of the information state
  sum       cumulative regret after the update, from which the next strategy follows
  next      probability of the action in the next iteration
  average   probability of the action in the average strategy so far

With alternating updates, the default, player 0 is updated first, and player 1 responds
to player 0's new strategy. With --algorithm 'cfr(alternating=false)', both respond to
the strategies of the iteration before, as in the textbook.

examples:
  spiel-cr trace --game kuhn_poker --iterations 3
  spiel-cr trace --game kuhn_poker --algorithm cfr+ --find 'J, after Check'
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from spiel_cr.common.checks import check_iterations
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce, number_text, one_line
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import as_tree
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig

from ..common.plurals import counted
from ..inspection import infoset_view
from .command import Arguments
from .show import LIST_LIMIT, ListOptions, choose_infosets

_HEADS = ("own", "others", "strategy", "value", "regret", "sum", "next", "average")


@dataclasses.dataclass(kw_only=True)
class TraceOptions(ListOptions):
    """Options of the command.

    Attributes:
      algorithm: Variant of CFR, as in solve, with a built-in regret rule (default cfr).
      iterations: Number of iterations (default 3).
    """

    game: str
    algorithm: str = "cfr"
    iterations: int = 3
    memory_limit: Limit = None


class Update(NamedTuple):
    """The update of a player in an iteration.

    Attributes:
      views: Infosets of the player under the strategies before the update.
      cumulative_regret: Regrets after the update, in the game's units, float64 [S].
      next_probability: The player's next strategy, float64 [S].
      average_probability: The player's average strategy so far, float64 [S].
    """

    views: Sequence[infoset_view.InfosetView]
    cumulative_regret: np.ndarray
    next_probability: np.ndarray
    average_probability: np.ndarray


def run(arguments: Arguments) -> dict[str, object]:
    """Trace CFR."""
    limit = LIST_LIMIT if arguments.limit is None else arguments.limit
    for name, count in (("limit", limit), ("iterations", arguments.iterations)):
        check_iterations(count, name=name)
    config = find(arguments.algorithm, families=(CFR,)).config
    if config.rule.custom is not None:
        raise ValueError(
            f"algorithm={arguments.algorithm!r}: a custom rule need not have regrets; "
            f"use a built-in rule such as cfr"
        )
    tree = as_tree(observations=True, **arguments.options("game", "memory_limit"))
    print(one_line(f"{arguments.game}, {arguments.algorithm}"))
    iterations = []
    for number, updates in enumerate(trace(tree, config, arguments.iterations), 1):
        rows: list[dict[str, object]] = []
        for player, update in enumerate(updates):
            if arguments.player not in (None, player):
                continue
            views = choose_infosets(tree, update.views, arguments.find, arguments.sort)
            print(f"\niteration {number}: player {player} is updated")
            rows += _print_update(tree, update, views[:limit])
            if len(views) > limit:
                left = counted(len(views) - limit, "more information state")
                print(f"... {left}; raise --limit, or use --find")
        iterations.append({"iteration": number, "infosets": rows})
    options = arguments.options("algorithm")
    return {"game": str(tree.game), **options, "iterations": iterations}


def trace(
    tree: GameTree, config: CFRConfig, iterations: int
) -> Iterator[tuple[Update, Update]]:
    """Yield the updates of both players in each iteration of CFR.

    Args:
      tree: Game tree.
      config: Settings of the algorithm, without a custom rule.
      iterations: Number of iterations.
    """
    announce(f"compiling {config.name}")
    solver = cfr.make_solver(tree.sequence_form, config=config, compile="once")
    after = solver.current_behaviour(0), solver.current_behaviour(1)
    for _ in range(iterations):
        before = after
        solver.run(1)
        after = solver.current_behaviour(0), solver.current_behaviour(1)
        seen = after[0] if config.alternating else before[0], before[1]
        first, second = (
            Update(
                infoset_view.view_infosets(tree, strategies)[player],
                solver.regrets(player),
                after[player],
                solver.average_behaviour(player),
            )
            for player, strategies in enumerate((before, seen))
        )
        yield first, second


def _print_update(
    tree: GameTree, update: Update, views: Sequence[infoset_view.InfosetView]
) -> list[dict[str, object]]:
    """Print the update of some infosets, and return it for JSON."""
    rows: list[dict[str, object]] = []
    lines: list[tuple[str, Sequence[float | None]]] = []
    for view in views:
        title, names = infoset_view.in_words(tree, view)
        lines.append((title, (view.player_reach, view.others_reach, None, view.value)))
        first = tree.infosets[view.player].decisions.first_sequence[view.number]
        actions = []
        for place, name in enumerate(names):
            action = view.actions[place]
            numbers = {"regret": action.value - view.value}
            for field in Update._fields[1:]:
                numbers[field] = float(getattr(update, field)[first + place])
            actions.append({**action._asdict(), **numbers})
            shown = (None, None, action.probability, action.value, *numbers.values())
            lines.append((f"  {name}", shown))
        rows.append({**view._asdict(), "name": title, "actions": actions})
    width = max((len(text) for text, _ in lines), default=0)
    print(" " * width + "".join(f"{head:>10}" for head in _HEADS))
    for text, row in lines:
        cells = ("" if x is None else number_text(x, ".4g") for x in row)
        print(f"{text:<{width}}{''.join(f'{cell:>10}' for cell in cells)}".rstrip())
    return rows
