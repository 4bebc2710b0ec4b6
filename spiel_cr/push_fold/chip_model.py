"""The independent chip model: values of stacks in a tournament, from stacks alone.

In this model (Harville 1973, for horse races) a player's probability of finishing first
is the player's share of the chips. The second place goes to one of the other players
with a probability equal to that player's share of the other players' chips, and so on.
"""

import itertools

import numpy as np

from spiel_cr.common.errors import GameTooLargeError

# Sets of players are enumerated; each player doubles time and memory.
_MOST_PLAYERS = 18


def chip_model(stacks: np.ndarray, prizes: np.ndarray) -> np.ndarray:
    """Compute expected prizes under the independent chip model, exactly.

    Time and memory grow as 2^n, for any number of prizes.

    Args:
      stacks: Chips of each player, [..., n], >= 0. At least one player has chips.
        Players without chips share the last places equally.
      prizes: Prizes, [m], from the first place on. Places without an entry win nothing.

    Returns:
      Expected prize of each player, float64 [..., n], in the unit of `prizes`.

    Raises:
      ValueError: If a number is negative or not finite, no player has chips, or there
        are more prizes than players.
      GameTooLargeError: If there are more than 18 players.
    """
    stacks, prizes = _checked(stacks, prizes)
    n = stacks.shape[-1]
    prize_of_place = np.zeros(n)
    prize_of_place[: len(prizes)] = prizes
    values = np.zeros(stacks.shape)
    # chance[set]: probability that exactly these players take the first places.
    chance = {0: np.ones(stacks.shape[:-1])}
    for place in range(n):
        later: dict[int, np.ndarray] = {}
        for taken, at in chance.items():
            left = [p for p in range(n) if not taken >> p & 1]
            total = stacks[..., left].sum(axis=-1)
            for p in left:
                share = stacks[..., p] / np.where(total > 0, total, 1)
                share = np.where(total > 0, share, 1 / len(left)) * at
                values[..., p] += share * prize_of_place[place]
                key = taken | 1 << p
                later[key] = later.get(key, 0) + share
        chance = later
    return values


def _checked(stacks: np.ndarray, prizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    stacks, prizes = np.asarray(stacks, float), np.asarray(prizes, float)
    for name, numbers in (("stacks", stacks), ("prizes", prizes)):
        if not numbers.size or not (np.isfinite(numbers) & (numbers >= 0)).all():
            raise ValueError(f"{name}={numbers.tolist()} must be numbers >= 0")
    if prizes.ndim != 1 or len(prizes) > stacks.shape[-1]:
        raise ValueError(
            f"prizes={prizes.tolist()} must be a list of at most as many prizes as "
            f"there are players, {stacks.shape[-1]}"
        )
    if stacks.shape[-1] > _MOST_PLAYERS:
        raise GameTooLargeError(
            f"stacks of {stacks.shape[-1]} players: the model enumerates sets of "
            f"players, at most {_MOST_PLAYERS}; give fewer"
        )
    if not (stacks.sum(axis=-1) > 0).all():
        raise ValueError(
            f"stacks={stacks.tolist()}: no player has chips; give at least one"
        )
    return stacks, prizes


def finishing_orders(n: int) -> list[tuple[int, ...]]:
    """Return all weak orders of n hands, as ranks.

    Args:
      n: Number of hands.

    Returns:
      Tuples of n ranks. 0 is best, hands of equal rank tie, and every rank up to the
      largest occurs.
    """
    return [
        ranks
        for ranks in itertools.product(range(n), repeat=n)
        if set(ranks) == set(range(max(ranks) + 1))
    ]
