"""Play on a compiled game's arrays: rollouts, and episodes of a searching responder.

Many episodes at once, stepped from one own decision to the next: all information states
where some of them stand are searched together.
"""

import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.tree.tree import CompiledGame, Infosets
from spiel_cr.judging.responses import ismcts_br, posterior, responder_tree
from spiel_cr.judging.responses.ismcts_config import SearchConfig
from spiel_cr.judging.responses.ismcts_kernel import PriorAndValue


class Moves(NamedTuple):
    """A compiled game's moves, ready to be drawn.

    Attributes:
      first_child: int64 [N], the first history below each; meaningless at terminals.
      num_children: int64 [N].
      running: float64 [N], cumulative sums over all histories of the probability of the
        move into each.
    """

    first_child: np.ndarray
    num_children: np.ndarray
    running: np.ndarray


def drawable_moves(tree: CompiledGame, probability: np.ndarray) -> Moves:
    """Lays out the moves of a game.

    Args:
      tree: the compiled game.
      probability: float64 [N], of the move into each history; 0 at the root, and where
        no move is to be drawn.
    """
    # Children are contiguous: one running sum serves all lists of probabilities.
    begin = np.searchsorted(tree.histories.parent, np.arange(len(tree.histories) + 1))
    return Moves(begin[:-1], np.diff(begin), np.cumsum(probability))


def roll_out(
    moves: Moves, histories: np.ndarray, stops: np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """int64 [R], where play ends that goes on from some histories.

    Args:
      moves: of the game.
      histories: int64 [R], where it begins.
      stops: bool [N], the histories at which nothing more is drawn.
      random: consumed.
    """
    reached = histories.copy()
    while True:
        going = np.flatnonzero(~stops[reached])
        if not len(going):
            return reached
        first = moves.first_child[reached[going]]
        end = first + moves.num_children[reached[going]]
        before, after = moves.running[first - 1], moves.running[end - 1]
        target = before + random.random(len(going)) * (after - before)
        drawn = np.searchsorted(moves.running, target, side="right")
        # Rounding may lead past the last child.
        reached[going] = np.clip(drawn, first, end - 1)


class DecisionProcess(NamedTuple):
    """A compiled game with a fixed opponent, which leaves one player to decide.

    Attributes:
      tree: the game.
      player: the responder.
      arrays: the game for searches, on the device.
      moves: of chance and the opponent.
    """

    tree: CompiledGame
    player: int
    arrays: responder_tree.SearchTree
    moves: Moves


class Exploring(NamedTuple):
    """How episodes depart from what searches say; by default they do not.

    Attributes:
      noise: share of Dirichlet noise in the prior of the infosets searched.
      concentration: of the Dirichlet distribution, of each action.
      temperature: actions are chosen with visits ** (1 / temperature); 0: the most
        visited one.
    """

    noise: float = 0.0
    concentration: float = 0.3
    temperature: float = 0.0


class Played(NamedTuple):
    """The K decisions of some episodes.

    Attributes:
      episode: int64 [K], whose decision it was.
      infoset: int32 [K], where it was.
      visits: float32 [K, A], share of the search's visits of each action.
      returned: float64 [K], the responder's return of the episode, its utility.
      simulations: run in all searches.
    """

    episode: np.ndarray
    infoset: np.ndarray
    visits: np.ndarray
    returned: np.ndarray
    simulations: int


def decision_process(
    tree: CompiledGame, player: int, other_behaviour: np.ndarray
) -> DecisionProcess:
    """Lays out a game for episodes.

    Args:
      tree: the compiled game.
      player: the responder.
      other_behaviour: float64 [S'], the opponent's action probabilities.

    Raises:
      ValueError: not a player, not a strategy, or the player never decides.
    """
    arrays = responder_tree.build(tree, player, other_behaviour)
    step = posterior.transitions(tree, player, other_behaviour)
    # The responder's own moves are not drawn: without them the sums stay small, and
    # with them their rounding.
    step[0] = 0
    step[1:][tree.histories.player[tree.histories.parent[1:]] == player] = 0
    moves = drawable_moves(tree, step)
    return DecisionProcess(tree, player, jax.device_put(arrays), moves)


def play(
    process: DecisionProcess,
    prior_and_value: PriorAndValue,
    config: SearchConfig,
    episodes: int,
    exploring: Exploring,
    *,
    key: jax.Array,
    random: np.random.Generator,
) -> Played:
    """Plays episodes to their ends; all searches share one table.

    Args:
      process: game and opponent.
      prior_and_value: of all infosets.
      config: of each search.
      episodes: how many.
      exploring: noise and temperature.
      key: of the searches; consumed.
      random: of moves and noise; consumed.
    """
    histories = process.tree.histories
    infosets = process.tree.infosets[process.player]
    table = ismcts_br.empty_table(process.arrays)
    acts = histories.player == process.player
    stops = acts | (histories.player == TERMINAL)
    current = np.zeros(episodes, np.int64)
    none = np.zeros(0, np.int64)
    parts = [(none, none, np.zeros((0, process.arrays.shape.actions)))]
    simulations = 0
    for number in itertools.count():
        current = roll_out(process.moves, current, stops, random)
        going = np.flatnonzero(acts[current])
        if not len(going):
            break
        infoset = histories.infoset[current[going]]
        roots, place = np.unique(infoset, return_inverse=True)
        noisy = with_noise(prior_and_value, infosets, roots, exploring, random)
        table, done = ismcts_br.search(
            process.arrays, table, noisy, roots, jax.random.fold_in(key, number), config
        )
        simulations += done
        sequence, legal = responder_tree.padded_sequences(infosets.decisions, roots)
        visits = np.where(legal, np.asarray(table.visits, np.float64)[sequence], 0.0)
        action = choose(visits[place], exploring.temperature, random)
        shares = visits / visits.sum(axis=1, keepdims=True)
        parts.append((going, infoset, shares[place]))
        current[going] = process.moves.first_child[current[going]] + action
    sign = 1 if process.player == 0 else -1
    episode, infoset, shares = (
        np.concatenate(column) for column in zip(*parts, strict=True)
    )
    return Played(
        episode,
        infoset.astype(np.int32),
        shares.astype(np.float32),
        # Not in the dtype of predicted values: returns are exact.
        sign * histories.utility[current][episode],
        simulations,
    )


def with_noise(
    prior_and_value: PriorAndValue,
    infosets: Infosets,
    roots: np.ndarray,
    exploring: Exploring,
    random: np.random.Generator,
) -> PriorAndValue:
    """The same with Dirichlet noise in the prior of some infosets.

    Args:
      prior_and_value: of all infosets.
      infosets: of the responder.
      roots: int [R], where the noise goes.
      exploring: its share and concentration.
      random: consumed.
    """
    if exploring.noise == 0:
        return prior_and_value
    prior = np.array(prior_and_value.prior)
    sequence, legal = responder_tree.padded_sequences(infosets.decisions, roots)
    # A Dirichlet draw is gamma draws, normalised. Small concentrations can make all of
    # them underflow: then the prior stays as it is.
    drawn = np.where(
        legal, random.gamma(exploring.concentration, size=legal.shape), 0.0
    )
    total = drawn.sum(axis=1, keepdims=True)
    share = np.where(total > 0, exploring.noise, 0.0)
    drawn = share * drawn / np.where(total > 0, total, 1.0)
    mixed = (1 - share) * prior[sequence] + drawn
    prior[sequence[legal]] = mixed[legal]
    return prior_and_value._replace(prior=jnp.asarray(prior))


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
