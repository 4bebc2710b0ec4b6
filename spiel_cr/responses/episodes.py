"""Fourth stage: episodes of a searching responder against a fixed opponent.

Many episodes of a compiled game at once, stepped from one own decision to the next: all
information states where some of them stand are searched together.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.compilation.numbering import TERMINAL
from spiel_cr.compilation.tree import CompiledGame, Infosets
from spiel_cr.responses import ismcts_br, posterior, responder_tree
from spiel_cr.responses.ismcts_config import SearchConfig
from spiel_cr.responses.ismcts_kernel import Guide, Table


class Arena(NamedTuple):
    """A compiled game with a fixed opponent, ready to be played.

    Attributes:
      tree: the game.
      player: the responder.
      arrays: the game for searches, on the device.
      shape: what programs must know of it.
      first_child: int64 [N], the first history below each; meaningless at terminals.
      num_children: int64 [N].
      running: float64 [N], cumulative sums over all histories of the probability of the
        move into each, where chance or the opponent made it.
    """

    tree: CompiledGame
    player: int
    arrays: responder_tree.SearchTree
    shape: responder_tree.Shape
    first_child: np.ndarray
    num_children: np.ndarray
    running: np.ndarray


class Played(NamedTuple):
    """The K decisions of some episodes.

    Attributes:
      episode: int64 [K], whose decision it was.
      infoset: int32 [K], where it was.
      action: int64 [K], place of the chosen action among the legal ones.
      visits: float32 [K, A], share of the search's visits of each action.
      returned: float64 [K], the responder's return of the episode, its utility.
      simulations: run in all searches.
    """

    episode: np.ndarray
    infoset: np.ndarray
    action: np.ndarray
    visits: np.ndarray
    returned: np.ndarray
    simulations: int


def arena(
    tree: CompiledGame,
    player: int,
    other_behaviour: np.ndarray,
) -> Arena:
    """Lays out a game for episodes.

    Args:
      tree: the compiled game.
      player: the responder.
      other_behaviour: float64 [S'], the opponent's action probabilities.

    Raises:
      ValueError: not a player, not a strategy, or the player never decides.
    """
    arrays, shape = responder_tree.build(tree, player, other_behaviour)
    above = tree.histories.parent[1:]
    below = np.arange(1, len(tree.histories))
    first = np.full(len(tree.histories), len(tree.histories))
    np.minimum.at(first, above, below)
    count = np.bincount(above, minlength=len(tree.histories))
    return Arena(
        tree,
        player,
        jax.device_put(arrays),
        shape,
        first,
        count,
        np.cumsum(_moves(tree, player, other_behaviour)),
    )


def play(
    where: Arena,
    guide: Guide,
    config: SearchConfig,
    episodes: int,
    *,
    key: jax.Array,
    random: np.random.Generator,
    noise: float = 0.0,
    concentration: float = 0.3,
    temperature: float = 0.0,
) -> Played:
    """Plays episodes to their ends; all searches share one table.

    Args:
      where: game and opponent.
      guide: prior and value.
      config: of each search.
      episodes: how many.
      key: of the searches; consumed.
      random: of moves and noise; consumed.
      noise: share of Dirichlet noise in the prior of the infosets searched.
      concentration: of the Dirichlet distribution, of each action.
      temperature: actions are chosen with visits ** (1 / temperature); 0: the most
        visited one.
    """
    histories = where.tree.histories
    infosets = where.tree.infosets[where.player]
    table = ismcts_br.empty_table(infosets, where.shape, np.float32)
    here = np.zeros(episodes, np.int64)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []
    simulations = 0
    while True:
        here = _go_on(where, here, random)
        going = np.flatnonzero(histories.player[here] == where.player)
        if not len(going):
            break
        infoset = histories.infoset[here[going]]
        roots, place = np.unique(infoset, return_inverse=True)
        noisy = with_noise(guide, infosets, roots, noise, concentration, random)
        table, done = ismcts_br.search(
            where.arrays,
            where.shape,
            table,
            noisy,
            roots,
            jax.random.fold_in(key, len(parts)),
            config,
        )
        simulations += done
        visits = _visits(infosets, table, roots, where.shape.actions)
        action = choose(visits[place], temperature, random)
        shares = visits / visits.sum(axis=1, keepdims=True)
        parts.append((going, infoset, action, shares[place]))
        here[going] = where.first_child[here[going]] + action
    sign = 1 if where.player == 0 else -1
    # Not the guide's dtype: returns are exact.
    returned = sign * histories.utility[here]
    if not parts:
        width = where.shape.actions
        none = np.zeros(0, np.int64)
        parts.append((none, none, none, np.zeros((0, width))))
    episode, at, action, shares = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    return Played(
        episode,
        at.astype(np.int32),
        action,
        shares.astype(np.float32),
        returned[episode],
        simulations,
    )


def with_noise(
    guide: Guide,
    infosets: Infosets,
    roots: np.ndarray,
    noise: float,
    concentration: float,
    random: np.random.Generator,
) -> Guide:
    """A guide with Dirichlet noise in the prior at some infosets.

    Args:
      guide: prior and value.
      infosets: of the responder.
      roots: int [R], where the noise goes.
      noise: its share, in [0, 1].
      concentration: of each action.
      random: consumed.
    """
    if noise == 0:
        return guide
    prior = np.array(guide.prior)
    at, legal = _sequences(infosets, roots, int(infosets.decisions.num_actions.max()))
    # A Dirichlet draw is gamma draws, normalised. Small concentrations can make all of
    # them underflow: then there is no noise here.
    drawn = np.where(legal, random.gamma(concentration, size=legal.shape), 0.0)
    total = drawn.sum(axis=1, keepdims=True)
    share = np.where(total > 0, noise, 0.0)
    mixed = (1 - share) * prior[at] + share * drawn / np.where(total > 0, total, 1.0)
    prior[at[legal]] = mixed[legal]
    return guide._replace(prior=jnp.asarray(prior))


def choose(
    visits: np.ndarray, temperature: float, random: np.random.Generator
) -> np.ndarray:
    """int64 [R], actions drawn with visits ** (1 / temperature).

    Args:
      visits: float [R, A], 0 at padding; at least one of each row is positive.
      temperature: 0: the most visited one, the first if equal.
      random: consumed.
    """
    if temperature == 0:
        return visits.argmax(axis=1)
    relative = visits / visits.max(axis=1, keepdims=True)
    running = np.cumsum(relative ** (1 / temperature), axis=1)
    target = random.random(len(visits)) * running[:, -1]
    drawn: np.ndarray = (running <= target[:, None]).sum(axis=1)
    return drawn


def _go_on(where: Arena, here: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Plays chance and the opponent until the responder is to act, or to the end.

    Args:
      where: game and opponent.
      here: int64 [R], histories.
      random: consumed.
    """
    mover = where.tree.histories.player
    here = here.copy()
    while True:
        acting = mover[here]
        moving = np.flatnonzero((acting != where.player) & (acting != TERMINAL))
        if not len(moving):
            return here
        first = where.first_child[here[moving]]
        end = first + where.num_children[here[moving]]
        before, after = where.running[first - 1], where.running[end - 1]
        target = before + random.random(len(moving)) * (after - before)
        drawn = np.searchsorted(where.running, target, side="right")
        # Rounding may lead past the last child.
        here[moving] = np.clip(drawn, first, end - 1)


def _moves(tree: CompiledGame, player: int, other_behaviour: np.ndarray) -> np.ndarray:
    """float64 [N], `posterior.transitions`, but 0 where the responder moves, and at the
    root: the sums of the others stay small, and with them their rounding."""
    step = posterior.transitions(tree, player, other_behaviour)
    step[0] = 0
    step[1:][tree.histories.player[tree.histories.parent[1:]] == player] = 0
    return step


def _sequences(
    infosets: Infosets, roots: np.ndarray, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """int [R, A], the sequences of some infosets, 0 at padding; bool [R, A], which are
    not padding."""
    legal = np.arange(width) < infosets.decisions.num_actions[roots][:, None]
    first = infosets.decisions.first_sequence[roots][:, None]
    return np.where(legal, first + np.arange(width), 0), legal


def _visits(
    infosets: Infosets,
    table: Table,
    roots: np.ndarray,
    width: int,
) -> np.ndarray:
    """float64 [R, A], visits of each action; 0 at padding."""
    at, legal = _sequences(infosets, roots, width)
    return np.where(legal, np.asarray(table.visits, np.float64)[at], 0.0)
