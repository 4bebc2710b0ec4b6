"""A public node as a grid of hands, with the probabilities of each action.

Rows and columns follow from the names of private states, "hand | board". With several
boards, there is a row for each hand and a column for each board. With one board, hands
of two cards are arranged by their ranks, suited ones above the diagonal. Other hands
are rows of a single column.
"""

import itertools
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.public_node_names import find_node, names_at, node_probabilities

from ..table import families

# Maximum number of boards that are shown together.
MOST_BOARDS = 30
_RANKS = "AKQJT98765432"
_TWO_CARDS = re.compile(rf"([{_RANKS}])([a-z])\s*([{_RANKS}])([a-z])")


class HandGrid(NamedTuple):
    """Probabilities of a policy at a public node.

    Attributes:
      path: Names of the players' actions that lead to the node.
      player: Player that acts.
      round: Round, from 0.
      actions: Names of the actions.
      hands: Hand of each private state.
      boards: Public cards of each private state; may be empty.
      played: Probabilities of the actions by private state, float [H, A].
      rows: Names of the grid's rows, from top to bottom.
      columns: Names of the grid's columns; a single empty name for a single column.
      cells: Mean over the private states of each cell, float [rows, columns, A]; NaN
        for a cell without any.
    """

    path: tuple[str, ...]
    player: int
    round: int
    actions: tuple[str, ...]
    hands: tuple[str, ...]
    boards: tuple[str, ...]
    played: np.ndarray
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    cells: np.ndarray


def hand_grid(policy: FormPolicy, node: str, board: str | None = None) -> HandGrid:
    """Arrange the probabilities of a policy at a public node.

    Args:
      policy: Policy of a game in public-tree form.
      node: Actions that lead to the node, see `find_node`.
      board: Public cards of the private states to show; None: all.

    Raises:
      ValueError: If the node or the board does not exist, or there are too many boards.
    """
    form = policy.form
    number, path = find_node(policy, node)
    player = int(form.betting.player[number])
    round = int(form.betting.round[number])
    played = node_probabilities(policy, number)
    names = [form.reader.name(player, round, s) for s in range(len(played))]
    parts = [name.partition("|") for name in names]
    hands, boards = ([part[place].strip() for part in parts] for place in (0, 2))
    kinds = list(dict.fromkeys(boards))
    if board is not None and not any(kinds):
        raise ValueError(
            f"board={board!r}: round {round} has no public cards; omit --board"
        )
    if board is not None:
        wanted = "".join(board.split()).lower()
        chosen = [kind for kind in kinds if "".join(kind.split()).lower() == wanted]
        if not chosen:
            raise ValueError(
                f"board={board!r}: not a board of round {round}; choose "
                f"among {_some(kinds)}"
            )
        kinds = chosen
    elif len(kinds) > MOST_BOARDS:
        raise ValueError(
            f"board: {len(names):,} hands on {len(kinds):,} boards are too many to "
            f"show; choose one with --board, such as {_some(kinds)}"
        )
    shown = [s for s, public in enumerate(boards) if public in kinds]
    shown_hands, shown_boards = (tuple(x[s] for s in shown) for x in (hands, boards))
    rows, columns, place = _places(shown_hands, shown_boards)
    cells = _means(played[shown], place, (len(rows), len(columns)))
    actions = tuple(names_at(form, number).values())
    state = shown_hands, shown_boards, played[shown]
    return HandGrid(path, player, round, actions, *state, rows, columns, cells)


def _some(kinds: Sequence[str]) -> str:
    """Return a few boards, quoted."""
    shown = ", ".join(repr(kind) for kind in kinds[:4])
    return shown + (", ..." if len(kinds) > 4 else "")


def _places(
    hands: Sequence[str], boards: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...], np.ndarray]:
    """Return rows, columns, and the cell of each private state: int [H, 2]."""
    pairs = [_TWO_CARDS.fullmatch(hand) for hand in hands]
    if len(set(boards)) > 1:
        rows, columns = tuple(dict.fromkeys(hands)), tuple(dict.fromkeys(boards))
        where = [
            (rows.index(hand), columns.index(board))
            for hand, board in zip(hands, boards, strict=True)
        ]
    elif all(pairs):
        rows = columns = tuple(_RANKS)
        where = []
        for pair in pairs:
            assert pair is not None
            first, second = sorted(_RANKS.index(pair[i]) for i in (1, 3))
            suited = pair[2] == pair[4]
            where.append((first, second) if suited else (second, first))
    else:
        rows, columns = tuple(dict.fromkeys(hands)), ("",)
        where = [(rows.index(hand), 0) for hand in hands]
    return rows, columns, np.array(where).reshape(-1, 2)


def _means(played: np.ndarray, place: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return means of the private states in each cell, float [rows, columns, A]."""
    cells = np.zeros((*shape, played.shape[1]))
    counts = np.zeros(shape)
    np.add.at(cells, tuple(place.T), played)
    np.add.at(counts, tuple(place.T), 1)
    with np.errstate(invalid="ignore"):
        means: np.ndarray = cells / np.where(counts > 0, counts, np.nan)[..., None]
    return means


def text_of(grid: HandGrid) -> str:
    """Return the grid as text: percentages, one grid for each action, or one table.

    Rows and columns without a hand are omitted.
    """
    if grid.columns == ("",):
        return _table(grid.rows, grid.actions, grid.cells[:, 0])
    parts = []
    has_hand = ~np.isnan(grid.cells[..., 0])
    across, down = has_hand.any(axis=1), has_hand.any(axis=0)
    rows = list(itertools.compress(grid.rows, across))
    columns = list(itertools.compress(grid.columns, down))
    for number, action in enumerate(grid.actions):
        table = _table(rows, columns, grid.cells[across][:, down, number])
        parts.append(f"{action}\n{table}")
    return "\n\n".join(parts)


def _table(rows: Sequence[str], columns: Sequence[str], cells: np.ndarray) -> str:
    """Return a table of percentages with names; NaN is left empty."""
    first = max(map(len, rows), default=0)
    widths = [max(3, len(name)) for name in columns]
    heads = (f"{n:>{w}}" for n, w in zip(columns, widths, strict=True))
    lines = [" ".join([" " * first, *heads])]
    for name, values in zip(rows, cells, strict=True):
        shown = [
            f"{'' if np.isnan(value) else round(100 * value):>{width}}"
            for value, width in zip(values, widths, strict=True)
        ]
        lines.append(" ".join([f"{name:<{first}}", *shown]).rstrip())
    return "\n".join(lines)


def title_of(game: pyspiel.Game) -> str:
    """Return a game in a few words, with its board, pot and stacks."""
    values = game.get_parameters()
    facts = [f"{name} {values[name]}" for name in ("pot", "stack") if name in values]
    facts = [with_suits(str(values["board"])), *facts] if "board" in values else facts
    return ", ".join([families.title_of(game), *facts])


def with_suits(cards: str) -> str:
    """Return cards such as "5c9d" with symbols for suits."""
    suits = dict(zip("cdhs", "♣♦♥♠", strict=True))
    return re.sub(r"(?<=[\dTJQKA])[cdhs]", lambda suit: suits[suit[0]], cards)
