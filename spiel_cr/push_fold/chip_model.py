"""What stacks are worth in a tournament before anything else is known of it.

The independent chip model (Harville 1973, for horses): the first place goes to a player
with a chance equal to its share of the chips, the second to one of the others with its
share of what these have, and so on.
"""

import itertools

import numpy as np

from spiel_cr.common.errors import GameTooLargeError

# Sets of players are enumerated; each more doubles time and memory.
_MOST_PLAYERS = 18


def chip_model(stacks: np.ndarray, prizes: np.ndarray) -> np.ndarray:
    """Expected prizes by the independent chip model, exactly.

    Time and memory grow as 2^n, for any number of prizes.

    Args:
      stacks: [..., n] chips of the players, >= 0, of which one at least has some. Those
        without chips share the places behind the others equally.
      prizes: [m] of the first place and those after it; places that are missing win
        nothing.

    Returns:
      float64 [..., n], every player's expected prize, in the unit of `prizes`.

    Raises:
      ValueError: a number is negative or not finite, nobody has chips, or there are
        more prizes than players.
      GameTooLargeError: more than 18 players.
    """
    stacks, prizes = _checked(stacks, prizes)
    n = stacks.shape[-1]
    prize_of_place = np.zeros(n)
    prize_of_place[: len(prizes)] = prizes
    values = np.zeros(stacks.shape)
    # chance[set]: that exactly these players take the first places.
    chance = {0: np.ones(stacks.shape[:-1])}
    for place in range(n):
        later: dict[int, np.ndarray] = {}
        for taken, at in chance.items():
            left = [p for p in range(n) if not taken >> p & 1]
            total = stacks[..., left].sum(axis=-1)
            for p in left:
                share = np.where(
                    total > 0, stacks[..., p] / np.where(total > 0, total, 1), 0
                )
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
        raise ValueError(f"stacks={stacks.tolist()}: nobody has chips; give some")
    return stacks, prizes


def finishing_orders(n: int) -> list[tuple[int, ...]]:
    """All weak orders of n hands, as ranks.

    Args:
      n: hands.

    Returns:
      Tuples of n ranks; 0 is best, hands of equal rank tie, and every rank up to the
      largest occurs.
    """
    return [
        ranks
        for ranks in itertools.product(range(n), repeat=n)
        if set(ranks) == set(range(max(ranks) + 1))
    ]
