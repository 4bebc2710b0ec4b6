"""Values of jamming and folding with every class of hands, against fixed strategies.

The hands of many games (B of them) are computed at once, as matrix products. The values
are sums over the other players' hands, weighted by the probabilities of the deal and of
their actions. Dividing by the probability of the class itself would not change any
decision.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.push_fold.rules import outcomes


class HandTables(NamedTuple):
    """Probabilities of deals and showdowns; C is the number of classes of hands.

    Attributes:
      deal: Probability that two players hold these classes, float32 [C, C]; symmetric,
        sums to one.
      win: Probability of this deal and that the first player's hand is better, float32
        [C, C].
      tie: Probability of this deal and that the hands tie, float32 [C, C].
      deal3: Probability that three players hold these classes, float32 [C*C, C]; [0, C]
        in tables of two players.
      order3: Probability that three players a, b, c hold these classes and that their
        hands finish in each order of `ORDERS`, float32 [8, C*C, C].
    """

    deal: np.ndarray
    win: np.ndarray
    tie: np.ndarray
    deal3: np.ndarray
    order3: np.ndarray


# Ranks of (a, b, c); the other five orders are obtained by swapping a and b.
ORDERS = (
    *((0, 1, 2), (0, 2, 1), (1, 2, 0)),
    *((0, 0, 1), (0, 1, 0), (0, 1, 1), (1, 1, 0), (0, 0, 0)),
)


class Values(NamedTuple):
    """Values of decisions, and probabilities of outcomes.

    B is the number of hands in the batch, I the number of `rules.infosets`, O that of
    `rules.outcomes`, and C the number of classes of hands.

    Attributes:
      fold: Value of folding per infoset and class, float32 [B, I, C]: the player's
        expected value times the probability of reaching the infoset with these cards,
        as far as the probability depends on chance and the other players.
      jam: Value of jamming, in the same form, float32 [B, I, C].
      outcomes: Probabilities of the outcomes, float32 [B, O].
    """

    fold: jax.Array
    jam: jax.Array
    outcomes: jax.Array


def two(tables: HandTables, jams: jax.Array, payoffs: jax.Array) -> Values:
    """Compute the values of a hand between two players.

    Args:
      tables: Probabilities of deals and showdowns.
      jams: Probabilities of jamming, float32 [B, 2, C], per infoset and class.
      payoffs: Value of each of `outcomes(2)` for each player, float32 [B, 5, 2].
    """
    sb, bb = jams[:, 0], jams[:, 1]
    deal, shown = tables.deal, _pair(tables)
    lost = _value(shown, payoffs[:, 2:5, 0])
    called = bb[:, None] * lost + (1 - bb)[:, None] * deal[None] * _scalar(
        payoffs[:, 1, 0]
    )
    fold_sb = deal.sum(1)[None] * payoffs[:, 0, 0, None]
    fold_bb = sb @ deal * payoffs[:, 1, 1, None]
    call_bb = jnp.einsum("bi,bij->bj", sb, _value(shown, payoffs[:, 2:5, 1]))
    both = jnp.einsum("bi,rij,bj->br", sb, shown, bb)
    none = (1 - sb) @ deal.sum(1)
    folds = jnp.einsum("bi,ij,bj->b", sb, deal, 1 - bb)
    return Values(
        jnp.stack([fold_sb, fold_bb], 1),
        jnp.stack([called.sum(2), call_bb], 1),
        jnp.concatenate([none[:, None], folds[:, None], both], 1),
    )


class Slow(NamedTuple):
    """The parts of the values of three players that change slowly and cost most.

    Attributes:
      fold: Values of folding, float32 [B, 3, C]: of the button, of the small blind
        after a jam, and of the big blind after two jams.
      jam: Contributions of showdowns of three players to the values of jamming at the
        same decisions, float32 [B, 3, C].
      outcomes: Probabilities of the outcomes of showdowns of three players, float32 [B,
        13].
    """

    fold: jax.Array
    jam: jax.Array
    outcomes: jax.Array


def three_slow(tables: HandTables, jams: jax.Array, payoffs: jax.Array) -> Slow:
    """Sum over the hands of two other players; for the arguments see `three`."""
    x, f, j, fj, jf, jj = jnp.moveaxis(jams, 1, 0)
    batch, classes = x.shape
    shown = _pair(tables)

    def third(stakes: jax.Array) -> jax.Array:
        """Return the third player's sums [B, C] from two players' [B, C, C]."""
        return stakes.reshape(batch, -1) @ tables.deal3

    chance = _chances(tables, shown)
    button = (
        _scalar(payoffs[:, 0, 0]) * (1 - f)[:, :, None]
        + _scalar(payoffs[:, 1, 0]) * f[:, :, None] * (1 - fj)[:, None]
        + f[:, :, None] * fj[:, None] * _value(chance, payoffs[:, 2:5, 0])
    )
    small = _scalar(payoffs[:, 5, 1]) * (1 - jf)[:, None] + jf[:, None] * _value(
        chance, payoffs[:, 6:9, 1]
    )
    big = x[:, :, None] * j[:, None] * _value(chance, payoffs[:, 9:12, 2])
    fold = jnp.stack([third(button), third(x[:, :, None] * small), third(big)], 1)
    # weight[b, p, m, s]: value of order m, with a and b swapped if s.
    weight = jnp.einsum("bop,oms->bpms", payoffs[:, 12:], jnp.asarray(_ORDER_OF))
    reach = jj @ tables.order3.reshape(-1, classes).T
    reach = reach.reshape(batch, len(ORDERS), classes, classes)
    both = jnp.stack([x, j], 1)
    x_first, j_first = jnp.moveaxis(jnp.einsum("bvi,bmij->bvmj", both, reach), 1, 0)
    x_second, j_second = jnp.moveaxis(jnp.einsum("bmji,bvi->bvmj", reach, both), 1, 0)
    jam_button = _weigh(weight[:, 0], j_second, j_first)
    jam_small = _weigh(weight[:, 1], x_first, x_second)
    xj = x[:, :, None] * j[:, None]
    stakes = (
        weight[:, 2, :, 0, None, None] * xj[:, None]
        + weight[:, 2, :, 1, None, None] * xj.transpose(0, 2, 1)[:, None]
    )
    jam_big = stakes.reshape(batch, -1) @ tables.order3.reshape(-1, classes)
    orders = jnp.stack(
        [(x_first * j[:, None]).sum(2), (x_second * j[:, None]).sum(2)], 2
    )
    outcomes = jnp.einsum("bms,oms->bo", orders, jnp.asarray(_ORDER_OF))
    return Slow(fold, jnp.stack([jam_button, jam_small, jam_big], 1), outcomes)


def three(
    tables: HandTables, jams: jax.Array, payoffs: jax.Array, slow: Slow
) -> Values:
    """Compute the values of a hand between three players.

    If one player folds, the showdown of the other two has the probabilities of two
    players: the effect of the folded cards on the board is ignored. Their effect on the
    other players' cards is not.

    Args:
      tables: Probabilities of deals and showdowns.
      jams: Probabilities of jamming, float32 [B, 6, C], per infoset and class.
      payoffs: Value of each of `outcomes(3)` for each player, float32 [B, 25, 3].
      slow: Result of `three_slow` for the same strategies, or for strategies close to
        them.
    """
    x, f, j, fj, jf, jj = jnp.moveaxis(jams, 1, 0)
    chance = _chances(tables, _pair(tables))
    batch, classes = x.shape
    # One product for all players who may fold, so that the table is read once.
    jammed = jnp.concatenate([x, j, jj]) @ tables.deal3.T
    jammed = jammed.reshape(3, batch, classes, classes)
    after_fold = _showdown(tables, chance, x, jammed[0], f, fj, payoffs, 2)
    after_jam = _showdown(tables, chance, j, jammed[1], x, jf, payoffs, 6)
    between = _showdown(tables, chance, jj, jammed[2], x, j, payoffs, 9)
    jam_f = after_fold.first[1] + after_fold.alone * payoffs[:, 1, 1, None]
    fold_f = after_fold.arrives * payoffs[:, 0, 1, None]
    fold_fj = after_fold.facing * payoffs[:, 1, 2, None]
    fold_jf = after_jam.facing * payoffs[:, 5, 2, None]
    jam_button = (
        after_jam.alone * payoffs[:, 5, 0, None]
        + after_jam.first[0]
        + between.first[0]
        + slow.jam[:, 0]
    )
    none = ((1 - f) * after_fold.arrives).sum(1)
    outcomes = [
        *(none[:, None], (f * after_fold.alone).sum(1)[:, None], after_fold.outcomes),
        *((x * after_jam.alone).sum(1)[:, None], after_jam.outcomes),
        *(between.outcomes, slow.outcomes),
    ]
    fold = [slow.fold[:, 0], fold_f, slow.fold[:, 1], fold_fj, fold_jf, slow.fold[:, 2]]
    jam = [
        *(jam_button, jam_f, between.second[1] + slow.jam[:, 1]),
        *(after_fold.second[2], after_jam.second[2], slow.jam[:, 2]),
    ]
    return Values(jnp.stack(fold, 1), jnp.stack(jam, 1), jnp.concatenate(outcomes, 1))


class _Showdown(NamedTuple):
    """Sums for two of three players, after the third one has folded.

    Attributes:
      arrives: [B, C], probability that the first player arrives there, by its cards.
      alone: [B, C], probability that the second player then folds.
      facing: [B, C], probability that the second player arrives there after a jam of
        the first player.
      first, second: Lists of n arrays [B, C], each player's value of showdowns by the
        first player's cards, and by the second player's.
      outcomes: [B, 3], probabilities of the outcomes of showdowns.
    """

    arrives: jax.Array
    alone: jax.Array
    facing: jax.Array
    first: list[jax.Array]
    second: list[jax.Array]
    outcomes: jax.Array


def _showdown(
    tables: HandTables,
    chance: jax.Array,
    folding: jax.Array,
    jammed: jax.Array,
    first: jax.Array,
    second: jax.Array,
    payoffs: jax.Array,
    start: int,
) -> _Showdown:
    """Sum over the deals in which the third player folds.

    Args:
      tables: Probabilities of deals and showdowns.
      chance: Result of `_chances`, [3, C, C].
      folding: Probability of jamming of the player who folds, [B, C].
      jammed: Probabilities of the other players' hands together with a jam of that
        player, [B, C, C].
      first, second: Probabilities of jamming of the other two players, [B, C].
      payoffs: Value of each outcome for each player, [B, O, n].
      start: Index of the first of the three outcomes of this showdown.
    """
    deals = tables.deal[None] - jammed
    # Sums over a row are products of matrices, which are fast.
    shown = deals[:, None] * chance[None]
    by_first = jnp.einsum("brij,bj->bri", shown, second)
    by_second = jnp.einsum("brij,bi->brj", shown, first)
    # Newer type stubs of numpy do not type `a - b` as an array of JAX.
    arrives = jnp.subtract(tables.deal.sum(1)[None], folding @ tables.deal)
    weights = payoffs[:, start : start + 3]
    players = range(payoffs.shape[2])
    return _Showdown(
        arrives,
        arrives - by_first.sum(1),
        by_second.sum(1),
        [(by_first * weights[:, :, p, None]).sum(1) for p in players],
        [(by_second * weights[:, :, p, None]).sum(1) for p in players],
        (by_first * first[:, None]).sum(2),
    )


def _order_table() -> np.ndarray:
    """Match finishing orders with ORDERS, swapped or not; float32 [13, 8, 2]."""
    table = np.zeros((13, len(ORDERS), 2), np.float32)
    for o, end in enumerate(outcomes(3)[12:]):
        first, second, third = end.ranks
        if end.ranks in ORDERS:
            table[o, ORDERS.index(end.ranks), 0] = 1
        else:
            table[o, ORDERS.index((second, first, third)), 1] = 1
    return table


_ORDER_OF = _order_table()


def _pair(tables: HandTables) -> jax.Array:
    """Return probabilities of a deal with a tie, a win, a loss; [3, C, C].

    Wins and losses are the first player's.
    """
    return jnp.stack([tables.tie, tables.win, tables.win.T])


def _chances(tables: HandTables, shown: jax.Array) -> jax.Array:
    """Return these probabilities given the deal; 0 for impossible deals."""
    deal = tables.deal
    return shown / jnp.where(deal > 0, deal, 1)[None]


def _value(shown: jax.Array, payoffs: jax.Array) -> jax.Array:
    """Return a player's value of a showdown, [B, C, C], from [3, C, C] and [B, 3]."""
    tie, win, lose = shown[:, None]
    t, w, u = (payoffs[:, r, None, None] for r in range(3))
    return t * tie + w * win + u * lose


def _scalar(payoffs: jax.Array) -> jax.Array:
    return payoffs[:, None, None]


def _weigh(weight: jax.Array, plain: jax.Array, swapped: jax.Array) -> jax.Array:
    """Return weighted sums over orders, [B, C].

    Args:
      weight: Weights of the orders and of the swapped orders, [B, 8, 2].
      plain: Sums for the orders, [B, 8, C].
      swapped: Sums for the swapped orders, [B, 8, C].
    """
    return jnp.einsum("bm,bmi->bi", weight[:, :, 0], plain) + jnp.einsum(
        "bm,bmi->bi", weight[:, :, 1], swapped
    )
