"""Policies in CSV files, which other programs can write."""

import csv
import os
from typing import cast

import numpy as np
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic
from spiel_cr.common.errors import CorruptFileError
from spiel_cr.common.parameters import read_number
from spiel_cr.games.tree.tree_builder import Game, as_tree
from spiel_cr.policies.behaviour_files import CSV_POLICY, corrupt
from spiel_cr.policies.conversions import Behaviours, check_behaviour, tabular_policy

_COLUMNS = ["information_state", "action", "probability"]

# Probability of each pair of an information state and an action.
_Rows = dict[tuple[str, int], float]


def load_csv_policy(
    path: atomic.Path, game: Game | None
) -> openspiel_policy.TabularPolicy:
    """Read a policy from a CSV file; docs/reference/formats.md describes the format.

    Args:
      path: Path of the file.
      game: The game that the policy is for.

    Raises:
      OSError: If the file cannot be read.
      CorruptFileError: If the file is invalid, or does not hold the probabilities of
        all information states of the game.
      ValueError: If no game is given.
    """
    if game is None:
        raise ValueError(
            f"path={os.fspath(path)!r}: a {CSV_POLICY} does not name its game; give "
            f"the game as an argument (--game)"
        )
    rows, tree = read_rows(path), as_tree(game)
    behaviours, used = [], set[tuple[str, int]]()
    for player, infosets in enumerate(tree.infosets):
        owners, actions = infosets.decisions.owner[1:], infosets.actions.tolist()
        pairs = [(infosets.keys[i], a) for i, a in zip(owners, actions, strict=True)]
        used.update(pairs)
        behaviour = np.array([1.0, *(rows.get(pair, 0.0) for pair in pairs)])
        try:
            behaviour = check_behaviour(tree, player, behaviour, tolerance=1e-6)
        except ValueError as error:
            raise corrupt(path, error) from error
        behaviours.append(behaviour)
    for state, action in rows:
        if (state, action) not in used and state not in tree.impossible.states:
            raise corrupt(
                path,
                f"{tree.game} has no information state {state!r} with action {action}",
            )
    return tabular_policy(tree, cast(Behaviours, tuple(behaviours)))


def read_rows(path: atomic.Path) -> _Rows:
    """Read the rows of a CSV file.

    Raises:
      OSError: If the file cannot be read.
      CorruptFileError: If it has other columns, a row is invalid, or a pair of an
        information state and an action occurs twice.
    """
    rows: _Rows = {}
    with open(path, encoding="utf-8", newline="") as file:
        lines = csv.reader(file, strict=True)
        try:
            if next(lines, None) != _COLUMNS:
                raise corrupt(path, f"its first line is not {','.join(_COLUMNS)}")
            for state, action, probability in lines:
                pair = state, int(action)
                if pair in rows:
                    raise ValueError("the action occurs twice")
                rows[pair] = read_number(probability)
        except CorruptFileError:
            raise
        except (csv.Error, ValueError) as error:  # also invalid UTF-8
            raise corrupt(path, f"line {lines.line_num}: {error}") from error
    return rows
