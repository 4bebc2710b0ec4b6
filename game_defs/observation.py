"""Shared parts of the observers: one flat tensor seen through named pieces.

All observers of this package follow the same conventions:

* *Private* pieces belong to players. `PrivateInfoType.SINGLE_PLAYER` shows those of the
  observing player and says who that is; `ALL_PLAYERS` shows those of both, whoever
  asks; `NONE` shows no private piece. So what is public looks the same to everybody.
* *Public* pieces are shown if `public_info` is set.
* With `perfect_recall` the pieces hold all that was ever seen, in order; without it,
  what matters now.
* The string and the tensor of an observer tell the same histories apart.
"""

from collections.abc import Mapping

import numpy as np
import pyspiel

NUM_PLAYERS = 2

Shape = tuple[int, ...]


def allocate(
    shapes: Mapping[str, Shape],
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Returns a flat float32 tensor of zeros and its pieces by name.

    Args:
      shapes: the shape of each piece, in the order in which they are laid out.

    Returns:
      The tensor [sum of sizes] and a dict of views of it, reshaped; writing to a view
      writes to the tensor.
    """
    sizes = [int(np.prod(shape)) for shape in shapes.values()]
    tensor = np.zeros(sum(sizes), np.float32)
    ends = np.cumsum(sizes)
    pieces = {
        name: tensor[end - size : end].reshape(shape)
        for (name, shape), size, end in zip(shapes.items(), sizes, ends, strict=True)
    }
    return tensor, pieces


def owners_shown(
    private_info: pyspiel.PrivateInfoType,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Returns whose private pieces an observer shows to player 0, and to player 1."""
    if private_info == pyspiel.PrivateInfoType.SINGLE_PLAYER:
        return (0,), (1,)
    if private_info == pyspiel.PrivateInfoType.ALL_PLAYERS:
        return (0, 1), (0, 1)
    return (), ()


def private_shapes(
    private_info: pyspiel.PrivateInfoType, shapes: Mapping[str, Shape]
) -> dict[str, Shape]:
    """Returns the private pieces of an observer, in their layout.

    Args:
      private_info: whose pieces the observer shows.
      shapes: the private pieces of one player.

    Returns:
      No piece; or `player` [2], the one who observes, and the pieces of one player; or
      the pieces with a leading axis of players.
    """
    if private_info == pyspiel.PrivateInfoType.SINGLE_PLAYER:
        return {"player": (NUM_PLAYERS,), **shapes}
    if private_info == pyspiel.PrivateInfoType.ALL_PLAYERS:
        return {name: (NUM_PLAYERS, *shape) for name, shape in shapes.items()}
    return {}


def refuse_parameters(game: str, params: Mapping[str, object] | None) -> None:
    """Raises ValueError if observer parameters were given; our games have none."""
    if params:
        raise ValueError(
            f"{game}: observers take no parameters; leave out {sorted(params)}"
        )
