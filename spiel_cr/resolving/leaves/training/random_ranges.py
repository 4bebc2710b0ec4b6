"""Random ranges: what players may hold at a cut.

Half of the pairs come from random play above the cut, the other half are drawn for each
public state alone, in the manner of ReBeL and Student of Games. Of both, some players
play or hold pure: one action, one infoset.
"""

import numpy as np

from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.resolving.leaves.public_states import PublicStates


def random_ranges(
    tree: CompiledGame,
    states: PublicStates,
    count: int,
    random: np.random.Generator,
    *,
    pure: float,
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of ranges for all public states.

    Args:
      tree: the compiled game.
      states: at cuts.
      count: B, of pairs.
      random: consumed.
      pure: the share of pure ones.

    Returns:
      float64 [B, J0] and [B, J1], own reach, whose sum is 1 in every state.
    """
    found = []
    for p in range(2):
        trunks = count // 2
        rows = np.concatenate(
            [
                _trunk_reach(tree, states, p, trunks, random, pure),
                _alone(states, p, count - trunks, random, pure),
            ]
        )
        # Mixed with a little of everything, sometimes: no infoset is ruled out.
        floor = np.where(
            random.random(count) < 0.3, 10 ** random.uniform(-4, -0.5, count), 0
        )
        rows = normalised(states, p, rows)
        even = normalised(states, p, np.ones_like(rows))
        rows = (1 - floor)[:, None] * rows + floor[:, None] * even
        # Each player's kinds of ranges meet all kinds of the other's.
        found.append(rows[random.permutation(count)])
    return found[0], found[1]


def normalised(states: PublicStates, player: int, reach: np.ndarray) -> np.ndarray:
    """Reach [B, J] over its sum in every public state; uniform where that is 0."""
    state, bounds = states.state[player], states.bounds(player)
    total = np.add.reduceat(reach, bounds[:-1], axis=1)[:, state]
    even = np.broadcast_to(1 / np.diff(bounds)[state], reach.shape).copy()
    return np.divide(reach, total, out=even, where=total > 0)


def _alone(
    states: PublicStates,
    player: int,
    count: int,
    random: np.random.Generator,
    pure: float,
) -> np.ndarray:
    """[count, J], drawn state by state: Dirichlet, some infosets ruled out."""
    state = states.state[player]
    sizes = (count, len(states.numbers))
    concentration = 10 ** random.uniform(-1.3, 0.7, sizes)
    rows = random.standard_gamma(concentration[:, state])
    ruled_out = np.where(random.random(sizes) < 0.4, random.random(sizes), 0)
    kept = random.random(rows.shape) >= ruled_out[:, state]
    # Of a pure range the largest draw is kept.
    largest = random.random(rows.shape)
    begins = states.bounds(player)[:-1]
    top = largest == np.maximum.reduceat(largest, begins, axis=1)[:, state]
    is_pure = random.random(sizes) < pure
    kept = np.where(is_pure[:, state], top, kept | top)
    return np.where(kept, rows + 1e-12, 0)


def _trunk_reach(
    tree: CompiledGame,
    states: PublicStates,
    player: int,
    count: int,
    random: np.random.Generator,
    pure: float,
) -> np.ndarray:
    """[count, J], own reach under random strategies of the whole game."""
    decisions = tree.infosets[player].decisions
    owner = decisions.owner[1:]
    concentration = 10 ** random.uniform(-1.3, 0.7, (count, 1))
    draws = (
        random.standard_gamma(np.broadcast_to(concentration, (count, len(owner))))
        + 1e-12
    )
    is_pure = random.random((count, 1)) < pure
    first = decisions.first_sequence - 1
    largest = np.maximum.reduceat(draws, first, axis=1)[:, owner]
    draws = np.where(is_pure, draws == largest, draws)
    behaviour = draws / np.add.reduceat(draws, first, axis=1)[:, owner]
    reach = np.ones((count, decisions.num_sequences))
    levels = decisions.levels()
    for level in range(int(levels.max(initial=-1)) + 1):
        mine = 1 + np.flatnonzero(levels[owner] == level)
        above = decisions.parent[decisions.owner[mine]]
        reach[:, mine] = reach[:, above] * behaviour[:, mine - 1]
    return reach[:, last_sequences(tree, states, player)]


def last_sequences(tree: CompiledGame, states: PublicStates, player: int) -> np.ndarray:
    """int32 [J], the player's last own sequence at each of its infosets at the cut."""
    found = np.zeros(len(states.infosets[player]), np.int32)
    found[states.place[player]] = tree.histories.sequence[player][states.history]
    return found
