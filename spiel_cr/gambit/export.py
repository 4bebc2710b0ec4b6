"""Game trees in Gambit's `.efg` format, and policies as behaviour profiles."""

import io
from collections.abc import Iterator, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from spiel_cr.common import atomic
from spiel_cr.common.memory import Limit
from spiel_cr.evaluation.opponent import open_opponent
from spiel_cr.games.histories import CHANCE, TERMINAL, states_at
from spiel_cr.games.opening.foreign_code import reporting
from spiel_cr.games.opening.gambit_files import distinct_labels, quoted
from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game, as_tree
from spiel_cr.players.player_specs import PolicyLike

# Largest denominator of chance probabilities, before floats are written exactly.
_DENOMINATOR = 10**6
_EQUAL = 1e-15


@reporting
def efg_text(game: Game, *, memory_limit: Limit = None) -> str:
    """Return a game in Gambit's `.efg` format.

    Infosets are labelled with information-state strings, and actions with OpenSpiel's
    names. Chance outcomes of probability zero are left out. Probabilities are written
    as fractions whose sum is exactly 1, as Gambit requires.

    Args:
      game: OpenSpiel game string, game, path of a Gambit file, or game tree.
      memory_limit: Largest memory for the game tree, as in `solve`.

    Raises:
      GameTooLargeError: If the game tree does not fit into memory.
      ValueError: If it is not a two-player zero-sum or constant-sum game.

    Example:
      >>> from spiel_cr import gambit
      >>> gambit.efg_text("kuhn_poker").splitlines()[0]
      'EFG 2 R "kuhn_poker()" { "Player 0" "Player 1" }'
    """
    return _text(as_tree(game, memory_limit=memory_limit))


def write_efg(game: Game, path: atomic.Path, *, memory_limit: Limit = None) -> None:
    """Write a game to a file in Gambit's `.efg` format; see `efg_text`.

    Raises:
      GameTooLargeError, ValueError: As `efg_text`.
      OSError: If the file cannot be written; an existing file is unchanged.
    """
    atomic.write_text(path, efg_text(game, memory_limit=memory_limit))


@reporting
def to_gambit(
    game: Game, policy: PolicyLike, *, memory_limit: Limit = None
) -> tuple[Any, Any]:
    """Return a game and a policy as objects of `pygambit`.

    Args:
      game: OpenSpiel game string, game, path of a Gambit file, or game tree.
      policy: An OpenSpiel policy, a result of `solve` or `resolve`, or a string such as
        "uniform", "cfr+(iterations=10)" or the path of a file.
      memory_limit: Largest memory for the game tree, as in `solve`.

    Returns:
      The `pygambit.Game`, and the policy as its mixed behaviour profile of floats.

    Raises:
      ImportError: If the extra [gambit] is not installed.
      GameTooLargeError: If the game tree does not fit into memory.
      ValueError: If the policy is not one of the game.
    """
    try:
        import pygambit
    except ImportError as error:
        raise ImportError(
            "to_gambit needs pygambit; install it with pip install 'spiel_cr[gambit]'",
            name="pygambit",
        ) from error
    tree = as_tree(game, memory_limit=memory_limit)
    behaviours = open_opponent(policy, tree, memory_limit=memory_limit).strategy()
    exported = pygambit.read_efg(io.BytesIO(_text(tree).encode()))
    profile = []
    for player, behaviour in enumerate(behaviours):
        first = tree.decisions[player].first_sequence.tolist()
        counts = tree.decisions[player].num_actions.tolist()
        order = _preorder_infosets(tree, player)
        parts = (behaviour[first[n] : first[n] + counts[n]] for n in order)
        profile.append([part.tolist() for part in parts])
    return exported, exported.mixed_behavior_profile(data=profile, rational=False)


def _preorder(tree: GameTree) -> Iterator[int]:
    """Yield all histories in the order of the file."""
    parents = tree.histories.parent
    begin = np.searchsorted(parents, np.arange(len(parents) + 1)).tolist()
    stack = [0]
    while stack:
        history = stack.pop()
        yield history
        stack += range(begin[history + 1] - 1, begin[history] - 1, -1)


def _preorder_infosets(tree: GameTree, player: int) -> list[int]:
    """Return a player's infosets in the order in which the file first mentions them."""
    infoset, acts = tree.histories.infoset.tolist(), tree.histories.player == player
    members = [infoset[history] for history in _preorder(tree) if acts[history]]
    return list(dict.fromkeys(members))


def _text(tree: GameTree) -> str:
    """Return a game tree in the `.efg` format."""
    histories, offset = tree.histories, payoff_offset(tree.game)
    actors, infosets = histories.player.tolist(), histories.infoset.tolist()
    numbers = [
        {infoset: n for n, infoset in enumerate(_preorder_infosets(tree, player), 1)}
        for player in range(2)
    ]
    names = [distinct_labels(list(map(quoted, part.keys))) for part in tree.infosets]
    labels = _action_labels(tree)
    title = quoted(str(tree.game))
    lines = [f'EFG 2 R {title} {{ "Player 0" "Player 1" }}', '""']
    chance_nodes = outcomes = 0
    for history in _preorder(tree):
        player = actors[history]
        if player == TERMINAL:
            outcomes += 1
            utility = float(histories.utility[history])
            payoffs = f"{_decimal(offset + utility)} {_decimal(offset - utility)}"
            lines.append(f't "" {outcomes} "" {{ {payoffs} }}')
        elif player == CHANCE:
            chance_nodes += 1
            listed = " ".join(labels[history])
            lines.append(f'c "" {chance_nodes} "" {{ {listed} }} 0')
        else:
            infoset = infosets[history]
            first = int(tree.infosets[player].history[infoset])
            head = f'p "" {player + 1} {numbers[player][infoset]}'
            listed = " ".join(labels[first])
            lines.append(f"{head} {names[player][infoset]} {{ {listed} }} 0")
    return "\n".join(lines) + "\n"


def _action_labels(tree: GameTree) -> dict[int, list[str]]:
    """Return quoted labels of the actions at chance nodes and of each infoset.

    Keys are histories: all chance nodes, and the first history of each infoset. Labels
    of chance outcomes are followed by their probabilities.
    """
    histories = tree.histories
    chance = np.flatnonzero(histories.player == CHANCE)
    nodes = [chance, *(infosets.history for infosets in tree.infosets)]
    chosen = np.concatenate(nodes).astype(np.int64)
    begin = np.searchsorted(histories.parent, [chosen, chosen + 1])
    labels = {}
    for place, state in states_at(tree.game, histories, chosen):
        children = slice(*begin[:, place].tolist())
        actions = histories.action[children].tolist()
        player, history = state.current_player(), int(chosen[place])
        words = [quoted(state.action_to_string(player, a)) for a in actions]
        labels[history] = distinct_labels(words)
        if player == CHANCE:
            reached = histories.chance[children] / histories.chance[history]
            fractions = _fractions(reached.tolist())
            pairs = zip(labels[history], fractions, strict=True)
            labels[history] = [f"{label} {share}" for label, share in pairs]
    return labels


def _fractions(probabilities: Sequence[float]) -> list[Fraction]:
    """Return probabilities as fractions whose sum is exactly 1."""
    shares = [Fraction(p).limit_denominator(_DENOMINATOR) for p in probabilities]
    pairs = zip(shares, probabilities, strict=True)
    near = all(abs(share - Fraction(p)) <= _EQUAL * p for share, p in pairs)
    if near and sum(shares) == 1:
        return shares
    shares = list(map(Fraction, probabilities))
    return [share / sum(shares) for share in shares]


def _decimal(number: float) -> str:
    """Return a number without an exponent, which Gambit does not read."""
    return format(Decimal(repr(number + 0.0)), "f")
