"""Sampling of one public trajectory, with values of all hands at once.

A trajectory samples public actions and public cards. Reach and values are vectors over
the hands of a board, so one trajectory updates all hands of the public states that it
visits (Schmid et al. 2019, "Variance reduction in Monte Carlo counterfactual regret
minimization (VR-MCCFR) for extensive form games using baselines", the vector form;
public chance sampling: Johanson et al. 2012, "Efficient Nash equilibrium approximation
through Monte Carlo counterfactual regret minimization").

Let v(x) be the updating player's counterfactual values at place x, a vector over the
player's hands, weighted by the opponent's reach and by chance. At the player's own
decisions, v(x) = sum over a of sigma(a) v(xa) for each hand. At the opponent's
decisions, v(x) is the plain sum over a, because the reach contains sigma. At deals, it
is the sum over boards, in which the value of each hand is added to the hand before the
deal. Let q(a) be the probability of following a, and b any vectors that do not depend
on the sample. Then

    u(xa) = b(xa) + [a followed] / q(a) * (u'(xa) - b(xa))

is an unbiased estimate of v(xa) if u' is unbiased. Combining the u(xa) like the v(xa)
gives an unbiased estimate of v(x), because all operations are linear. If b is exact,
then u is exact for every sample.

Visits are recorded in a list in which parents precede their children. The descent
appends to the list, and the backward pass processes it from the end.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from spiel_cr.solvers.mccfr.public.public_places import DEAL, LEAF, PlaceArrays
from spiel_cr.solvers.mccfr.public.rows import at, put
from spiel_cr.solvers.mccfr.walk import choose


class SamplingRates(NamedTuple):
    """Sampling probabilities of a trajectory.

    Attributes:
      epsilon: Share of uniform sampling at the updating player's decisions.
      epsilon_other: Share of uniform sampling at the other player's decisions.
      follow: Followed actions, a static string: "outcome", one at each place;
        "external", all of the updating player; "all", all of both players and all
        public cards.
    """

    epsilon: float
    epsilon_other: float
    follow: str


class Visits(NamedTuple):
    """List of the visits of a trajectory, with capacity V.

    Attributes:
      length: Number of visits, int32 scalar.
      place: Place of each visit, int32 [V].
      above: Parent visit, int32 [V]; 0 at visit 0.
      decision: Last visit above at which the updating player decides, int32 [V]; -1 if
        none exists.
      slot: Action that leads to the visit, int32 [V]; 0 below deals.
      rate: Probability of following the edge from the parent visit, float [V].
      product: Product of the rates from the first visit on, float [V].
      reach: Reach of both players' hands, float [V, 2, h].
      stake: Largest absolute payoff of each hand against the opponent's reach, float
        [V, h]; 0 without baselines.
      guess: Baseline times `stake`, float [V, h].
      values: Estimates by action, float [V, A, h]; at deals, their sum in row 0.
      value: Estimates of v, float [V, h].
    """

    length: jax.Array
    place: jax.Array
    above: jax.Array
    decision: jax.Array
    slot: jax.Array
    rate: jax.Array
    product: jax.Array
    reach: jax.Array
    stake: jax.Array
    guess: jax.Array
    values: jax.Array
    value: jax.Array


def walk(
    places: PlaceArrays,
    strategy: jax.Array,
    baseline: jax.Array | None,
    draws: jax.Array,
    *,
    player: int,
    rates: SamplingRates,
    capacity: int,
) -> Visits:
    """Sample one trajectory.

    Args:
      places: Places of the game.
      strategy: Action probabilities, float [Y + 1, A, h]; 0 at illegal actions.
      baseline: Estimates of the updating player's values at each place, float [X, h],
        per unit of stake (the opponent's reach times `PlaceArrays.mass`); None: zero.
      draws: Independent random numbers in [0, 1), one for each visit, float [V].
      player: Player whose values are estimated.
      rates: Sampling probabilities.
      capacity: Capacity V of the list, at least the result of `most_visits`.
    """
    hands, width = strategy.shape[2], strategy.shape[1]
    dtype = strategy.dtype
    numbers = jnp.zeros((capacity, hands), dtype)
    indices = jnp.zeros(capacity, jnp.int32)
    visits = Visits(
        length=jnp.int32(1),
        place=indices,
        above=indices,
        decision=indices - 1,
        slot=indices,
        rate=jnp.ones(capacity, dtype),
        product=jnp.ones(capacity, dtype),
        reach=put(jnp.zeros((capacity, 2, hands), dtype), jnp.int32(0), places.start),
        stake=numbers,
        guess=numbers,
        values=jnp.zeros((capacity, width, hands), dtype),
        value=numbers,
    )
    down = _Down(places, strategy, baseline, draws, player, rates)
    visits = jax.lax.while_loop(
        lambda s: s[0] < s[1].length,
        lambda s: (s[0] + 1, down.visit(s[0], s[1])),
        (jnp.int32(0), visits),
    )[1]
    return jax.lax.while_loop(
        lambda s: s[0] >= 0,
        lambda s: (s[0] - 1, _climb(places, strategy, s[0], s[1], player)),
        (visits.length - 1, visits),
    )[1]


class _Down(NamedTuple):
    """Read-only inputs of the descent; see the arguments of `walk`."""

    places: PlaceArrays
    strategy: jax.Array
    baseline: jax.Array | None
    draws: jax.Array
    player: int
    rates: SamplingRates

    def visit(self, i: jax.Array, visits: Visits) -> Visits:
        """Append the children that follow visit i, and initialise its estimates."""
        places, rates = self.places, self.rates
        place = at(visits.place, i)
        kind, count = at(places.kind, place), at(places.children, place)
        first = at(places.first, place)
        sigma = at(self.strategy, at(places.row, place))
        legal = at(places.legal, at(places.row, place))
        reach, draw = at(visits.reach, i), at(self.draws, i)
        deal, is_updating = kind == DEAL, kind == self.player
        epsilon = jnp.where(is_updating, rates.epsilon, rates.epsilon_other)
        likely = _likely(sigma, legal, jnp.where(kind == 1, reach[1], reach[0]))
        likely = (1 - epsilon) * likely + epsilon * legal / legal.sum()

        def probability(action: jax.Array) -> jax.Array:
            card = at(places.probability, first + jnp.where(deal, action, 0))
            return jnp.where(deal, card, at(likely, jnp.where(deal, 0, action)))

        chosen = choose(probability, count, draw)
        all_of_them = jnp.bool_(rates.follow == "all")
        if rates.follow == "external":
            all_of_them = is_updating
        if self.baseline is not None:
            visits = visits._replace(
                values=put(visits.values, i, self._guesses(place, reach, sigma))
            )

        def append(j: jax.Array, visits: Visits) -> Visits:
            action = jnp.where(all_of_them, j, chosen)
            below = first + action
            rate = jnp.where(all_of_them, 1, probability(action))
            after = self._reach_below(below, kind, action, reach, sigma)
            stake, guess = self._guess(below, after[1 - self.player])
            k = visits.length
            return visits._replace(
                length=k + 1,
                place=put(visits.place, k, below),
                above=put(visits.above, k, i),
                decision=put(
                    visits.decision,
                    k,
                    jnp.where(is_updating, i, at(visits.decision, i)),
                ),
                slot=put(visits.slot, k, jnp.where(deal, 0, action)),
                rate=put(visits.rate, k, rate),
                product=put(visits.product, k, rate * at(visits.product, i)),
                reach=put(visits.reach, k, after),
                stake=put(visits.stake, k, stake),
                guess=put(visits.guess, k, guess),
            )

        followed = jnp.where(all_of_them, count, jnp.minimum(count, 1))
        return jax.lax.fori_loop(0, followed, append, visits)

    def _reach_below(
        self,
        below: jax.Array,
        kind: jax.Array,
        action: jax.Array,
        reach: jax.Array,
        sigma: jax.Array,
    ) -> jax.Array:
        """Return both players' reach at a child of a place, float [2, h]."""
        places = self.places
        played = sigma[jnp.where(kind < DEAL, action, 0)]
        after = [jnp.where(kind == p, reach[p] * played, reach[p]) for p in range(2)]
        dealt = [
            reach[p][at(places.up[p], at(places.map, below))]
            * at(places.has_hand[p], at(places.board, below))
            for p in range(2)
        ]
        return jnp.where(kind == DEAL, jnp.stack(dealt), jnp.stack(after))

    def _guess(self, place: jax.Array, other: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the stake and the baseline at a place, float [h] each.

        Args:
          place: Number of the place, int32.
          other: Reach of the opponent there, float [h].
        """
        if self.baseline is None:
            return jnp.zeros_like(other), jnp.zeros_like(other)
        mass = at(self.places.mass, at(self.places.board, place))
        stake = _product(mass, other, self.player)
        return stake, stake * at(self.baseline, place)

    def _guesses(
        self, place: jax.Array, reach: jax.Array, sigma: jax.Array
    ) -> jax.Array:
        """Return the baselines of all children, float [A, h]; at deals, their sum."""
        places = self.places
        kind, count = at(places.kind, place), at(places.children, place)
        first = at(places.first, place)

        def one(action: jax.Array, values: jax.Array) -> jax.Array:
            below = first + action
            after = self._reach_below(below, kind, action, reach, sigma)
            guess = self._guess(below, after[1 - self.player])[1]
            guess = jnp.where(
                kind == DEAL, _gather_up(places, below, guess, self.player), guess
            )
            row = jnp.where(kind == DEAL, 0, action)
            return put(values, row, at(values, row) + guess)

        return jax.lax.fori_loop(0, count, one, jnp.zeros_like(sigma))


def _likely(sigma: jax.Array, legal: jax.Array, reach: jax.Array) -> jax.Array:
    """Return action probabilities, averaged over hands by reach, float [A]."""
    played = (sigma * reach[None]).sum(axis=1)
    total = played.sum()
    even = legal / legal.sum()
    return jnp.where(total > 0, played / jnp.where(total > 0, total, 1), even)


def _product(matrix: jax.Array, other: jax.Array, player: int) -> jax.Array:
    """Return the product of a matrix [h, h] and the opponent's vector, float [h].

    The rows of the matrix are player 0's hands and its columns player 1's.
    """
    return (
        (matrix * other[None]).sum(1)
        if player == 0
        else (matrix * other[:, None]).sum(0)
    )


def _gather_up(
    places: PlaceArrays, below: jax.Array, values: jax.Array, player: int
) -> jax.Array:
    """Return sums of values after a deal by the hands before the deal, float [h]."""
    up = at(places.up[player], at(places.map, below))
    has_hand = at(places.has_hand[player], at(places.board, below))
    # A scatter would prevent XLA from compiling the walk to one piece of machine code.
    comes = up[None] == jnp.arange(len(up), dtype=up.dtype)[:, None]
    return jnp.where(comes, (values * has_hand)[None], 0).sum(axis=1)


def _climb(
    places: PlaceArrays, strategy: jax.Array, i: jax.Array, visits: Visits, player: int
) -> Visits:
    """Compute the estimate of visit i and pass it to the parent visit."""
    place = at(visits.place, i)
    kind = at(places.kind, place)
    reach, values = at(visits.reach, i), at(visits.values, i)
    sigma = at(strategy, at(places.row, place))
    sign = 1 - 2 * player

    def pay(term: jax.Array, total: jax.Array) -> jax.Array:
        payoff_matrix = at(places.payoff_matrices, at(places.term_matrix, term))
        stake = sign * at(places.term_stake, term)
        return total + stake * _product(payoff_matrix, reach[1 - player], player)

    term = at(places.term, place)
    paid = jax.lax.fori_loop(term[0], term[1], pay, jnp.zeros_like(values[0]))
    inner = jnp.where(kind == player, (sigma * values).sum(0), values.sum(0))
    value = jnp.where(kind == LEAF, paid, inner)
    above, slot = at(visits.above, i), at(visits.slot, i)
    excess = (value - at(visits.guess, i)) / at(visits.rate, i)
    dealt = at(places.kind, at(visits.place, above)) == DEAL
    excess = jnp.where(dealt, _gather_up(places, place, excess, player), excess)
    excess = jnp.where(i > 0, excess, 0)
    # A scatter would have the same disadvantage as in `_gather_up`.
    row = at(visits.values, above)
    return visits._replace(
        values=put(visits.values, above, put(row, slot, at(row, slot) + excess)),
        value=put(visits.value, i, value),
    )
