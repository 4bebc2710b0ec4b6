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

__all__ = [
    "NUM_PLAYERS",
    "Shape",
    "allocate",
    "clear",
    "owners_shown",
    "private_shapes",
    "type_to_show",
]

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


def clear(tensor: np.ndarray, pieces: Mapping[str, np.ndarray], player: int) -> None:
    """Empties an observer's tensor but for `player`, who observes, where it is shown.

    Args:
      tensor: written to, as `allocate` gave it.
      pieces: its pieces, laid out by `private_shapes`.
      player: the one who observes.
    """
    tensor.fill(0)
    if "player" in pieces:
        pieces["player"][player] = 1


def type_to_show(
    game: str,
    iig_obs_type: pyspiel.IIGObservationType | None,
    params: Mapping[str, object] | None,
) -> pyspiel.IIGObservationType:
    """Returns what an observer of a game shows, from the arguments asking for one.

    Args:
      game: short name, for the message.
      iig_obs_type: None means that of the observation tensor.
      params: observer parameters; our games have none.

    Raises:
      ValueError: parameters were given.
    """
    if params:
        raise ValueError(
            f"{game}: observers take no parameters; leave out {sorted(params)}"
        )
    return iig_obs_type or pyspiel.IIGObservationType(perfect_recall=False)
