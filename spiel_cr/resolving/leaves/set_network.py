"""A set network: both players' ranges at public states → counterfactual values.

Infosets are a set, not slots: each is embedded by what is known there, and what an
infoset is worth is decoded from its own embedding, from the mean embedding of what the
other player may hold given that one holds this (known exactly: chance and its range),
and from both ranges as a whole. So the network has no more inputs for a larger range,
and its values do not depend on the order of infosets.

Values are zero-sum by construction. The network gives each public state one value V of
player 0, and every infoset a difference from it. What becomes of that depends on
`Architecture.pairs`:

  - 0: the mean of the differences over the player's range is subtracted. Only the asked
    player's infosets are decoded.
  - K: the network says what each *pair* of infosets is worth to player 0, V plus player
    0's difference less player 1's plus the product of two vectors of K numbers, and
    an infoset is worth the mean over what the other player may hold. Where the ranges
    change little and what is played below not at all, values are linear in the other
    player's range, and this network need not learn that.

Inside, arithmetic is in single precision; weights of chance and ranges, which values
are multiplied with, keep theirs.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.jax_utils import typed
from spiel_cr.resolving.leaves.public_states import PublicStates

# float32 arrays by name.
Parameters = Mapping[str, jax.Array]

# Groups of public states are padded to one shape; the next group begins where a state
# has so many times fewer pairs of infosets.
_GROUP_RATIO = 4


class Architecture(NamedTuple):
    """Sizes of a network.

    Attributes:
      features: F, numbers known of an infoset.
      hidden: H, units of every layer.
      blocks: residual layers of the decoder.
      pairs: K, the rank of what pairs of infosets are worth; 0: each player's infosets
        are valued alone.
    """

    features: int
    hidden: int = 64
    blocks: int = 2
    pairs: int = 0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of all parameters, by name."""
        f, h = self.features, self.hidden
        found: dict[str, tuple[int, ...]] = {
            "embed0": (f, h),
            "embed0_bias": (h,),
            "embed1": (h, h),
            "embed1_bias": (h,),
            "decode_self": (h, h),
            "decode_bias": (h,),
            "decode_given": (h, h),
            "decode_scale": (h, h),
            "decode_scaled": (h, h),
            "decode_own": (h, h),
            "decode_other": (h, h),
            "decode_out": (h,),
            "value_first": (h, h),
            "value_second": (h, h),
            "value_bias": (h,),
            "value_out": (h,),
            "value_out_bias": (),
        }
        for head in ("decode", "value"):
            for block in range(self.blocks):
                found[f"{head}_block{block}"] = (h, h)
                found[f"{head}_block{block}_bias"] = (h,)
        if self.pairs:
            found["decode_pair_out"] = (h, self.pairs)
        return found


def initial(architecture: Architecture, seed: int) -> dict[str, np.ndarray]:
    """Random parameters, float32: normal, variance 2 over the inputs; biases 0."""
    random = np.random.default_rng(seed)
    parameters = {}
    for name, shape in architecture.shapes().items():
        if name.endswith("bias"):
            parameters[name] = np.zeros(shape, np.float32)
            continue
        size = (2 / shape[0]) ** 0.5
        if name.endswith("out") or "_block" in name:
            size /= 4
        parameters[name] = (size * random.standard_normal(shape)).astype(np.float32)
    return parameters


class Embedded(NamedTuple):
    """What does not depend on ranges: one row per infoset at the cut.

    Attributes:
      decode_self: [J, H], and so on: embeddings times the parameters of that name.
    """

    decode_self: jax.Array
    decode_given: jax.Array
    decode_scale: jax.Array
    decode_scaled: jax.Array
    decode_own: jax.Array
    decode_other: jax.Array
    value: jax.Array


def embed(parameters: Parameters, features: jax.Array, player: int) -> Embedded:
    """Embeds the infosets of a player.

    Args:
      parameters: of the network.
      features: float32 [J, F].
      player: whose.

    Returns:
      Arrays of numpy where all arguments are of numpy: nothing is compiled then.
    """
    p = parameters
    hidden = _rectified(_affine(p, "embed0", features))
    hidden = _rectified(_affine(p, "embed1", hidden))
    return Embedded(
        hidden @ p["decode_self"] + p["decode_bias"][None],
        hidden @ p["decode_given"],
        hidden @ p["decode_scale"],
        hidden @ p["decode_scaled"],
        hidden @ p["decode_own"],
        hidden @ p["decode_other"],
        hidden @ p["value_second" if player else "value_first"],
    )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Group:
    """Public states of similar size, padded to one shape.

    Attributes:
      infosets: int32 [P, n0] and [P, n1], infosets by their place in the range; padding
        stands one behind the last.
      weights: float [P, n0, n1], chance of each pair of infosets.
    """

    infosets: tuple[jax.Array, jax.Array]
    weights: jax.Array


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Places:
    """Where public states lie in ranges, and ranges in the groups.

    Attributes:
      groups: of similar size.
      order: int32 [J0] and [J1], where the groups' results, joined, have each infoset.
    """

    groups: tuple[Group, ...]
    order: tuple[jax.Array, jax.Array]


class Capacity(NamedTuple):
    """Shapes in which the places of each of several sets of public states fit.

    Attributes:
      groups: by the logarithm of their size, the most states, and the most infosets of
        either player in a state.
      sizes: the most infosets of either player.
    """

    groups: Mapping[int, tuple[int, int, int]]
    sizes: tuple[int, int]


def capacity_of(sets: Sequence[PublicStates]) -> Capacity:
    """The smallest capacity in which each of some sets fits."""
    groups: dict[int, tuple[int, int, int]] = {}
    for states in sets:
        sizes, bucket = _sizes(states)
        for number in np.unique(bucket).tolist():
            chosen = bucket == number
            first, second = (int(own[chosen].max()) for own in sizes)
            most = groups.get(number, (0, 0, 0))
            groups[number] = (
                max(int(chosen.sum()), most[0]),
                max(first, most[1]),
                max(second, most[2]),
            )
    first, second = (
        max((len(states.infosets[p]) for states in sets), default=0) for p in range(2)
    )
    return Capacity(dict(sorted(groups.items())), (first, second))


def _sizes(states: PublicStates) -> tuple[list[np.ndarray], np.ndarray]:
    """By player int64 [P], infosets of each state; int64 [P], the group of each."""
    count = len(states.numbers)
    sizes = [np.bincount(own, minlength=count) for own in states.state]
    pairs = np.maximum(sizes[0] * sizes[1], 1)
    return sizes, np.floor(np.log(pairs) / np.log(_GROUP_RATIO) + 1e-9).astype(int)


def find_places(states: PublicStates, capacity: Capacity | None = None) -> Places:
    """Sorts public states into groups; numpy arrays.

    Args:
      states: the states.
      capacity: shapes to pad to, so that sets of one capacity have arrays of equal
        shapes; None: those that these states need.
    """
    count, capacity = len(states.numbers), capacity or capacity_of([states])
    sizes, bucket = _sizes(states)
    starts = [np.searchsorted(own, np.arange(count)) for own in states.state]
    within = [
        np.arange(len(own)) - start[own]
        for own, start in zip(states.state, starts, strict=True)
    ]
    root_state = states.state[0][states.place[0]]
    groups = []
    order = [np.zeros(size, np.int32) for size in capacity.sizes]
    done = [0, 0]
    for number, (most, *widths) in capacity.groups.items():
        chosen = np.flatnonzero(bucket == number)
        row = np.full(count, -1)
        row[chosen] = np.arange(len(chosen))
        infosets = []
        for p in range(2):
            mine = np.flatnonzero(row[states.state[p]] >= 0)
            table = np.full((most, widths[p]), capacity.sizes[p], np.int32)
            table[row[states.state[p][mine]], within[p][mine]] = mine
            infosets.append(table)
            flat = row[states.state[p][mine]] * widths[p] + within[p][mine]
            order[p][mine] = done[p] + flat
            done[p] += table.size
        weights = np.zeros((most, *widths))
        roots = np.flatnonzero(row[root_state] >= 0)
        first, second = (within[p][states.place[p][roots]] for p in range(2))
        np.add.at(
            weights, (row[root_state[roots]], first, second), states.chance[roots]
        )
        groups.append(Group((typed(infosets[0]), typed(infosets[1])), typed(weights)))
    return Places(tuple(groups), (typed(order[0]), typed(order[1])))


def both_values(
    parameters: Parameters,
    embedded: tuple[Embedded, Embedded],
    places: Places,
    ranges: tuple[jax.Array, jax.Array],
) -> tuple[tuple[jax.Array, jax.Array], tuple[jax.Array, jax.Array]]:
    """Counterfactual values of both players' infosets.

    Args:
      parameters: of the network.
      embedded: of the players' infosets, from `embed`.
      places: of the public states.
      ranges: float [J0] and [J1], own reach of each infoset.

    Returns:
      Of player 0 and of player 1: q, float [J], chance and the other's range of each of
      the player's infosets; and u, float32 [J], its value per unit of that, of size 1
      at most but for errors, own perspective. A counterfactual value is q · u · the
      game's largest utility. Within a jitted program XLA leaves out what is not used.
    """
    padded = tuple(jnp.append(own, jnp.zeros((), own.dtype)) for own in ranges)
    tables = tuple(
        Embedded(*(jnp.concatenate([own, own[:1] * 0]) for own in side))
        for side in embedded
    )
    groups = [
        _group_values(parameters, tables, group, padded) for group in places.groups
    ]
    first, second = (
        tuple(
            jnp.concatenate([group[p][k].reshape(-1) for group in groups])[
                places.order[p]
            ]
            for k in range(2)
        )
        for p in range(2)
    )
    return (first[0], first[1]), (second[0], second[1])


def _group_values(
    parameters: Parameters,
    tables: tuple[Embedded, ...],
    group: Group,
    ranges: tuple[jax.Array, ...],
) -> list[tuple[jax.Array, jax.Array]]:
    """`both_values` of one group, each [P, n]; 0 at padding."""
    places = group.infosets
    rows = [
        Embedded(*(table[mine] for table in own))
        for own, mine in zip(tables, places, strict=True)
    ]
    weights = group.weights.astype(ranges[0].dtype)
    pairs = weights, weights.swapaxes(1, 2)
    held = [own[mine] for own, mine in zip(ranges, places, strict=True)]
    # Distributions, for what depends on ranges in another way than by scale.
    mixed = [
        _distribution(reach, mine < len(own) - 1)
        for reach, mine, own in zip(held, places, ranges, strict=True)
    ]
    joint = weights * mixed[0][:, :, None] * mixed[1][:, None, :]
    total = joint.sum(axis=(1, 2))[:, None]
    scale = 1 / jnp.where(total > 0, total, 1)
    own_share = [(joint.sum(axis=2 - p) * scale).astype(jnp.float32) for p in range(2)]
    # Of what the other may hold, by what one holds.
    given = [
        _share(pairs[p] * mixed[1 - p][:, None, :], 2).astype(jnp.float32)
        for p in range(2)
    ]
    values = _relative_values(parameters, rows, own_share, given)
    reach = [(pairs[p] * held[1 - p][:, None, :]).sum(axis=2) for p in range(2)]
    return list(zip(reach, values, strict=True))


def _relative_values(
    parameters: Parameters,
    rows: list[Embedded],
    own_share: list[jax.Array],
    given: list[jax.Array],
) -> list[jax.Array]:
    """`both_values` per unit of chance and the other's range, of one group.

    Args:
      parameters: of the network.
      rows: by player, embeddings of the states' infosets, [P, n, H].
      own_share: by player float32 [P, n], how likely its infosets are.
      given: by player float32 [P, n, m], what the other may hold, by what one holds.
    """
    context = [
        _mean(own_share[p], rows[p].decode_own)
        + _mean(own_share[1 - p], rows[1 - p].decode_other)
        for p in range(2)
    ]
    decoded = [
        _decode(
            parameters,
            "decode",
            rows[p].decode_self
            + _means(given[p], rows[1 - p].decode_given)
            # Payoffs are products of what both hold.
            + rows[p].decode_scale * _means(given[p], rows[1 - p].decode_scaled)
            + context[p][:, None],
        )
        for p in range(2)
    ]
    hidden = _mean(own_share[0], rows[0].value) + _mean(own_share[1], rows[1].value)
    hidden = _decode(parameters, "value", hidden + parameters["value_bias"][None])
    value = hidden @ parameters["value_out"] + parameters["value_out_bias"]
    difference = [own @ parameters["decode_out"] for own in decoded]
    vectors = (
        [own @ parameters["decode_pair_out"] for own in decoded]
        if ("decode_pair_out" in parameters)
        else None
    )
    found = []
    for p in range(2):
        o, sign = 1 - p, 1 - 2 * p
        if vectors is None:
            other = (own_share[p] * difference[p]).sum(axis=1)[:, None]
        else:
            other = _means(given[p], difference[o][..., None])[..., 0]
            product = vectors[p] * _means(given[p], vectors[o])
            other = other - sign * product.sum(axis=2)
        found.append(difference[p] - other + sign * value[:, None])
    return found


def _distribution(reach: jax.Array, real: jax.Array) -> jax.Array:
    """Reach [P, n] as distributions; uniform over what is real where all is zero."""
    total = reach.sum(axis=1)[:, None]
    even = real / jnp.maximum(real.sum(axis=1), 1)[:, None].astype(reach.dtype)
    return jnp.where(total > 0, reach / jnp.where(total > 0, total, 1), even)


def _share(numbers: jax.Array, axis: int) -> jax.Array:
    """Numbers over their sum along an axis; 0 where that is 0."""
    total = jnp.expand_dims(numbers.sum(axis=axis), axis)
    return numbers / jnp.where(total > 0, total, 1)


def _mean(shares: jax.Array, rows: jax.Array) -> jax.Array:
    """[P, H] from shares [P, n] and rows [P, n, H]."""
    return _means(shares[:, None], rows)[:, 0]


def _means(shares: jax.Array, rows: jax.Array) -> jax.Array:
    """[P, m, H] from shares [P, m, n] and rows [P, n, H]."""
    return jnp.einsum("pmn,pnh->pmh", shares, rows)


def _affine(parameters: Parameters, name: str, hidden: jax.Array) -> jax.Array:
    """One layer: weights and bias by name."""
    bias = parameters[f"{name}_bias"]
    return hidden @ parameters[name] + bias.reshape((1,) * (hidden.ndim - 1) + (-1,))


def _rectified(hidden: jax.Array) -> jax.Array:
    """max(hidden, 0), of the kind that `hidden` is."""
    if isinstance(hidden, np.ndarray):
        return typed(np.maximum(hidden, 0))
    return jax.nn.relu(hidden)


def _decode(parameters: Parameters, head: str, hidden: jax.Array) -> jax.Array:
    """[..., H] from what is in front of the first nonlinearity, [..., H]."""
    hidden = jax.nn.relu(hidden)
    block = 0
    while f"{head}_block{block}" in parameters:
        inner = _affine(parameters, f"{head}_block{block}", hidden)
        hidden = hidden + jax.nn.relu(inner)
        block += 1
    return hidden
