"""How much sampled counterfactual values vary, at the strategies of one moment."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.cfr.solver import Solver
from spiel_cr.common.checks import check_seed, check_whole
from spiel_cr.common.jax_utils import as_one_kernel, cast, precision
from spiel_cr.public_sampling import places, solver, walk
from spiel_cr.public_sampling.config import PublicConfig, parse_public
from spiel_cr.public_sampling.rows import at

# Trajectories between two looks at the sums.
_CHUNK = 512


class Variance(NamedTuple):
    """Mean squared errors of one trajectory, in the game's units squared.

    Attributes:
      total: for each player, mean over infosets and actions: of the sampled
        counterfactual value, 0 where the trajectory does not come.
      values: for each player, the same but for the error that sampling has even where
        the values that it meets are known exactly; 0 with exact baselines.
      root: for each player, of the sampled value of the game.
      samples: trajectories per player.
    """

    total: tuple[float, float]
    values: tuple[float, float]
    root: tuple[float, float]
    samples: int


def exact_values(
    given: places.Places,
    strategy: jax.Array | np.ndarray,
    player: int,
    capacity: int,
) -> walk.Visits:
    """A walk that goes everywhere: every place's values are exact.

    Args:
      given: the public tree.
      strategy: float [Y + 1, A, h].
      player: whose values.
      capacity: from `places.most_visits(problem.places, player, "all")`.
    """
    return _walk(
        given,
        jnp.asarray(strategy),
        None,
        jnp.zeros(capacity),
        player=player,
        rates=walk.Rates(0.0, 0.0, "all"),
        capacity=capacity,
        per_stake=False,
    )


def estimate_variance(
    solver_: Solver,
    algorithm: str | PublicConfig | None = None,
    *,
    oracle: bool = False,
    samples: int = 10_000,
    seed: int = 0,
) -> Variance:
    """Measures the trajectories that a solver would walk next.

    Args:
      solver_: from `solver.make_solver`; its current strategies and, where the
        algorithm has them, its baselines are used.
      algorithm: another one's sampling, as in "public-vr(baseline=none)"; None: the
        solver's own.
      oracle: with exact baselines instead.
      samples: trajectories per player.
      seed: of all random numbers.

    Raises:
      ValueError: baselines are asked for and the solver has none, or as `make_solver`.
    """
    config = solver_.config if algorithm is None else parse_public(algorithm)
    samples, seed = check_whole(samples, "samples", 1), check_seed(seed)
    state, problem = solver_.state, solver_.problem
    learned = config.baseline == "average" and not oracle
    if learned and state.baseline is None:
        raise ValueError(
            f"algorithm={config.name!r} has baselines and the solver's "
            f"{solver_.config.name!r} has not; give one without, or such a solver"
        )
    double = np.dtype(np.float64)
    found, entries = [], _entries(problem.places)
    with precision(double):
        given = jax.device_put(cast(problem.places, double))
        strategy = jnp.asarray(np.asarray(state.strategy, double))
        for player in range(2):
            most = places.most_visits(problem.places, player, "all")
            visits = exact_values(given, strategy, player, most)
            exact = _exact_tables(given, visits, strategy.shape)
            table = exact.at_place if oracle else None
            if learned:
                table = jnp.asarray(np.asarray(state.baseline[player], double))
            key = jax.random.fold_in(jax.random.key(seed), player)
            capacity = places.most_visits(problem.places, player, config.scheme)
            sums, done = np.zeros(3), 0
            while done < samples:
                key, own = jax.random.split(key)
                sums += np.asarray(
                    _errors(
                        *(given, strategy, table, exact, own),
                        player=player,
                        rates=solver.rates_of(config),
                        capacity=capacity,
                        per_stake=not oracle,
                    )
                )
                done += _CHUNK
            scale = np.array([entries[player], entries[player], 1]) * done
            found.append(4.0**solver_.exponent * sums / scale)
    total, values, root = (tuple(map(float, part)) for part in zip(*found, strict=True))
    return Variance(total, values, root, done)  # type: ignore[arg-type]


def _entries(given: places.Places) -> list[int]:
    """How many infoset-actions each player has."""
    kind, board = np.asarray(given.kind), np.asarray(given.board)
    found = []
    for player in range(2):
        mine = np.flatnonzero(kind == player)
        hands = np.asarray(given.there[player])[board[mine]].sum(axis=1)
        found.append(int(hands @ np.asarray(given.children)[mine]))
    return found


class _Exact(NamedTuple):
    """float [Y + 1, A, h], values of actions; float [X, h], of places."""

    actions: jax.Array
    at_place: jax.Array


def _exact_tables(
    given: places.Places, visits: walk.Visits, shape: tuple[int, ...]
) -> _Exact:
    rows = given.row[visits.place]
    actions = jnp.zeros(shape).at[rows].set(visits.values)
    by_place = jnp.zeros((len(given.kind), shape[2]))
    return _Exact(actions, by_place.at[visits.place].set(visits.value))


@functools.partial(
    jax.jit, static_argnames=("player", "rates", "capacity", "per_stake")
)
def _walk(
    given: places.Places,
    strategy: jax.Array,
    table: jax.Array | None,
    draws: jax.Array,
    *,
    player: int,
    rates: walk.Rates,
    capacity: int,
    per_stake: bool,
) -> walk.Visits:
    return walk.walk(
        given,
        strategy,
        None if table is None else walk.Baseline(table, per_stake),
        draws,
        player=player,
        rates=rates,
        capacity=capacity,
    )


@functools.partial(
    jax.jit, static_argnames=("player", "rates", "capacity", "per_stake")
)
def _errors(
    given: places.Places,
    strategy: jax.Array,
    table: jax.Array | None,
    exact: _Exact,
    key: jax.Array,
    *,
    player: int,
    rates: walk.Rates,
    capacity: int,
    per_stake: bool,
) -> jax.Array:
    """float [3], summed squared errors of some trajectories: total, values, root."""
    decides = (given.kind == player)[:, None, None]
    hands = given.there[player][given.board][:, None]
    legal = jnp.where(decides, given.legal[given.row][:, :, None] * hands, 0)
    right = exact.actions[given.row]
    # What is not visited errs by its value.
    everywhere = (legal * right**2).sum()

    def run(given: places.Places, legal: jax.Array, right: jax.Array) -> jax.Array:
        def one(number: jax.Array, sums: jax.Array) -> jax.Array:
            draws = jax.random.uniform(jax.random.fold_in(key, number), (capacity,))
            visits = walk.walk(
                given,
                strategy,
                None if table is None else walk.Baseline(table, per_stake),
                draws.astype(strategy.dtype),
                player=player,
                rates=rates,
                capacity=capacity,
            )

            def add(i: jax.Array, sums: jax.Array) -> jax.Array:
                place = at(visits.place, i)
                counts, values = at(legal, place), at(right, place)
                sampled = at(visits.values, i) / at(visits.product, i)
                off = sampled - values / at(visits.product, i)
                total = counts * ((sampled - values) ** 2 - values**2)
                errors = [total.sum(), (counts * off**2).sum(), jnp.zeros(())]
                return sums + jnp.stack(errors)

            root = (visits.value[0] - exact.at_place[0]).sum()
            sums = sums + jnp.stack([everywhere, jnp.zeros(()), root**2])
            return jax.lax.fori_loop(0, visits.length, add, sums)

        return jax.lax.fori_loop(0, _CHUNK, one, jnp.zeros(3))

    found: jax.Array = as_one_kernel(run, given, legal, right)
    return found
