"""Matrix games: from an array, or from a file of comma-separated values.

A matrix game becomes Gambit's table of payoffs, so that the names of its rows and
columns are the names of actions, and its identity is its content.
"""

import csv
import math
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.games.opening import gambit_files

SUFFIX = ".csv"


def is_matrix(game: object) -> bool:
    """Return whether a game is an array, or the path of a file of values."""
    if isinstance(game, str | os.PathLike):
        return os.fspath(game).lower().endswith(SUFFIX)
    return isinstance(game, np.ndarray)


def load(game: Any) -> pyspiel.Game:
    """Load a matrix game from an array or a file; see `matrix_game` and `read_csv`."""
    return matrix_game(game) if isinstance(game, np.ndarray) else read_csv(game)


def matrix_game(
    payoffs: Any,
    row_names: Sequence[str] | None = None,
    column_names: Sequence[str] | None = None,
) -> pyspiel.Game:
    """Make a zero-sum matrix game, in which both players choose at the same time.

    Player 0 chooses a row and player 1 a column. Player 1 does not see the row.

    Args:
      payoffs: Player 0's payoffs, finite numbers [rows, columns].
      row_names: Name of each row. If None, the numbers from 1.
      column_names: Name of each column. If None, the numbers from 1.

    Returns:
      A game of OpenSpiel that all functions accept. Its string names a file in the
      user's cache folder whose name contains a hash of the game.

    Raises:
      ValueError: If the payoffs are not a matrix of finite numbers, or the number of
        names differs from that of rows or columns.

    Example:
      >>> import spiel_cr
      >>> pennies = spiel_cr.matrix_game([[2, -1], [-1, 1]], ["heads", "tails"])
      >>> result = spiel_cr.solve(pennies, "lp")
      >>> round(result.game_value(), 6)
      0.2
    """
    matrix = np.asarray(payoffs)
    if matrix.ndim != 2 or not matrix.size or matrix.dtype.kind not in "biuf":
        raise ValueError(
            f"payoffs: an array of shape {matrix.shape} and type {matrix.dtype}; give "
            f"numbers [rows, columns]"
        )
    if not np.isfinite(matrix).all():
        raise ValueError("payoffs: some are not finite; give finite numbers")
    label_lists = {"row_names": row_names, "column_names": column_names}
    names = []
    for (argument, labels), count in zip(
        label_lists.items(), matrix.shape, strict=True
    ):
        labels = labels or [str(k + 1) for k in range(count)]
        if len(labels) != count:
            raise ValueError(
                f"{argument}: {len(labels)} names for {count}; give one name for each"
            )
        names.append(" ".join(map(gambit_files.quoted, map(str, labels))))
    text = f'NFG 1 R "matrix game" {{ "Row" "Column" }} {{ {{ {names[0]} }} '
    text += f'{{ {names[1]} }} }}\n""\n'
    # The first player's strategy is the fastest index of the table.
    exact = (Fraction(number) for number in matrix.T.ravel().tolist())
    text += " ".join(f"{number} {-number}" for number in exact)
    return gambit_files.load_text(text, "matrix_game")


def read_csv(path: str | os.PathLike[str]) -> pyspiel.Game:
    """Read a matrix game from a file of comma-separated values.

    Each line has player 0's payoffs for a row. The first line may have the names of
    the columns, and the first value of each line may be the name of the row.

    Args:
      path: Path of the file.

    Raises:
      FileNotFoundError: If there is no such file.
      ValueError: If lines have different lengths or a payoff is not a number; the
        message has the line.
    """
    name = os.fspath(path)
    if not os.path.isfile(name):
        raise FileNotFoundError(f"game={name!r}: there is no such file; check the path")
    with Path(name).open(encoding="utf-8-sig", newline="") as file:
        lines = [line for line in enumerate(csv.reader(file), 1) if any(line[1])]
    if not lines:
        raise ValueError(f"game={name!r}: the file is empty; write a matrix of payoffs")
    has_columns = any(_number(cell) is None for cell in lines[0][1][1:])
    body = lines[has_columns:]
    has_rows = bool(body) and all(_number(cells[0]) is None for _, cells in body)
    column_names = lines[0][1][has_rows:] if has_columns else None
    payoffs = []
    for line, cells in body:
        numbers = [_number(cell) for cell in cells[has_rows:]]
        if None in numbers or len(numbers) != len(body[0][1]) - has_rows:
            raise ValueError(
                f"game={name!r}: line {line} is {','.join(cells)!r}; write as many "
                f"numbers as in line {body[0][0]}, with commas between them"
            )
        payoffs.append(numbers)
    row_names = [cells[0] for _, cells in body] if has_rows else None
    try:
        return matrix_game(np.array(payoffs, float), row_names, column_names)
    except ValueError as error:
        raise ValueError(f"game={name!r}: {error}") from error


def _number(text: str) -> float | None:
    """Return the finite number that a text contains; None if there is none."""
    try:
        number = float(Fraction(text.strip()))
    except (ValueError, ZeroDivisionError, OverflowError):
        return None
    return number if math.isfinite(number) else None
