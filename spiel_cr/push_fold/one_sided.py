"""What jam or fold wins heads-up at least, where only one player is held to it.

We jam or fold; the opponent may do whatever the rules allow (Miltersen & Sørensen,
AAMAS 2007). No hand comes to a flop with chips behind: we are all in or out. On the
small blind we jam or fold, and the opponent calls or folds. On the big blind we meet a
fold, a call of the blind, a raise to any size, or a jam, and jam or give up; the
opponent then calls, or gives up what it put in. A called blind that we do not raise
counts as a pot that we lose: checking it down could only win more.

All of this is one form of stage. The opponent folds at once or makes one of K *offers*,
sizes of its bet. We go in, or lose our blind. If we go in, it calls or quits. On our
small blind there is one offer, the big blind.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from spiel_cr.common.checks import check_integer
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.push_fold import outer, rules
from spiel_cr.push_fold.engine import InnerSettings
from spiel_cr.push_fold.hands import HandTables
from spiel_cr.push_fold.outer import OuterRound
from spiel_cr.push_fold.rules import Outcome
from spiel_cr.push_fold.tournament import TournamentSetting

# Of `guarantee`, unless it is told.
ROUNDS, STEPS = 4, 1000
# Arrays of a raise for every unit grow with the cube of the chips.
_MOST_UNITS = 300
# Of chances to win: what the decision processes of the check are solved to.
_TOLERANCE = 1e-9
_FOLDS, _JAM_WINS, _BOTH = (False, False), (True, False), (True, True)


class Stages(NamedTuple):
    """Stages of M states with K offers: our chips after each ending, and who may what.

    Attributes:
      opponent_folds: int [M, 1, 1].
      we_fold: int [M, 1, 1].
      quits: int [M, K, 1], where we go in and the opponent quits.
      shown: int [M, 3, 1, 1], after a tie, a win and a loss of ours.
      allowed: bool [M, 2 * K + 1, 1], the opponent's plans, see `OneSided`.
      forced: bool [M, 1, 1], our blind took all our chips.
    """

    opponent_folds: np.ndarray
    we_fold: np.ndarray
    quits: np.ndarray
    shown: np.ndarray
    allowed: np.ndarray
    forced: np.ndarray


class Endings(NamedTuple):
    """What endings are worth to us; shapes as in `Stages`."""

    opponent_folds: Any
    we_fold: Any
    quits: Any
    shown: Any


class Guarantee(NamedTuple):
    """What a jam-or-fold strategy wins; columns: on the small blind, on the big blind.

    Attributes:
      stacks: int [M], our chips in units.
      lower: float64 [M, 2], the chance to win the tournament against a best response.
      upper: float64 [M, 2], what no jam-or-fold strategy surpasses, by a best response
        to the opponent's strategy; a called blind that we do not raise is lost there.
      gap: float64 [M, 2], the most by which any strategy at all may win more often.
      profile: float32 [2 * M, 3 * K + 1, C], see `OneSided`.
    """

    stacks: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    gap: np.ndarray
    profile: np.ndarray


def guarantee(
    setting: TournamentSetting,
    tables: HandTables,
    *,
    rounds: int | None = None,
    steps: int | None = None,
    on_round: Callable[[int, OuterRound], None] | None = None,
) -> Guarantee:
    """Finds a jam-or-fold strategy, and what it wins against whatever opponent.

    Chips are whole units, so raises are, too. What the strategy wins is the value of
    the opponent's decision process against it. The value V of the whole game obeys
    V(x) = 1 - V(total - x) with the blinds exchanged, so it is at least `lower` and at
    most one minus the other seat's `lower`: the difference is the gap.

    Args:
      setting: of two players; prizes do not matter.
      tables: of two hands.
      rounds: of policy iteration around stages; None: 4.
      steps: of regret matching in each stage and round; None: 1000.
      on_round: called with 2 and each round.

    Raises:
      ValueError: the setting is of three players, or `rounds` or `steps` is no whole
        number of at least 1.
      GameTooLargeError: there are more than 300 units of chips.
    """
    rounds = ROUNDS if rounds is None else rounds
    steps = STEPS if steps is None else steps
    check_integer(rounds, "rounds", 1)
    check_integer(steps, "steps", 1)
    check_room(setting)
    game = OneSided(setting, tables)
    for last in outer.rounds(game, "pi-fp", InnerSettings(steps, steps)):
        if on_round:
            on_round(2, last)
        if last.number >= rounds:
            break
    best, _ = outer.best_deviation(game, last.profile, tolerance=_TOLERANCE)
    upper, losses = (best[:, p].reshape(2, -1).T for p in (0, 1))
    lower = 1 - losses
    gap = 1 - lower[::-1, ::-1] - lower
    return Guarantee(np.arange(1, setting.total), lower, upper, gap, last.profile)


def check_room(setting: TournamentSetting) -> None:
    """Refuses what `guarantee` refuses; see there."""
    if setting.players != 2:
        raise ValueError(
            f"players={setting.players}: what jam or fold wins against any opponent is "
            f"known of two players; give two stacks"
        )
    if setting.total > _MOST_UNITS:
        raise GameTooLargeError(
            f"total={setting.total} units of chips and as many raises are more than "
            f"{_MOST_UNITS}; round stacks to multiples of the small blind"
        )


class OneSided:
    """The one-sided tournament as a stochastic game: we are player 0.

    Implements `outer.StochasticGame`. The N = 2 * M states are our chips, 1 to M, first
    on the small blind, then on the big blind. Values [N, 2] are chances to win the
    tournament. A profile is float32 [N, 3 * K + 1, C] by class of hands: our chance to
    go in after each offer; then the opponent's chances of its plans: to offer k and
    quit, to offer k and call, to fold at once. The last offer is all chips. On our
    small blind K is 1, and the rest of the array is not used.
    """

    def __init__(self, setting: TournamentSetting, tables: HandTables) -> None:
        """Lists all stages."""
        self.most = setting.total - 1
        self.tables = tables
        self._exact = HandTables(*(t.astype(float) for t in tables))
        self.seats = (_stages(setting, 0), _stages(setting, 1))

    def start_values(self) -> np.ndarray:
        """The shares of the chips, [N, 2]."""
        share = np.tile(np.arange(1, self.most + 1) / (self.most + 1), 2)
        return np.stack([share, 1 - share], 1)

    def start_profile(self) -> np.ndarray:
        """All that is allowed, equally likely, [N, 3 * K + 1, C]."""
        rows, classes = self.seats[1].allowed.shape[1], len(self.tables.deal)
        offers = self.seats[1].quits.shape[1]
        profile = np.zeros((2 * self.most, rows + offers, classes), np.float32)
        for stages, part in self._by_seat(profile):
            k = stages.quits.shape[1]
            part[:, :k] = np.where(stages.forced, 1, 0.5)
            part[:, k:] = stages.allowed / stages.allowed.sum(1, keepdims=True)
        return profile

    def play(
        self, profile: np.ndarray, values: np.ndarray, inner: InnerSettings, begin: int
    ) -> np.ndarray:
        """Regret matching within every stage, with fixed values after it.

        Args:
          profile: [N, 3 * K + 1, C], of which nothing is kept.
          values: [N, 2] after the hand.
          inner: how long.
          begin: of no use.
        """
        new = profile.copy()
        by_seat = self._endings(values[:, 0])
        for (stages, part), endings in zip(self._by_seat(new), by_seat, strict=True):
            small = Endings(*(np.asarray(w, np.float32) for w in endings))
            may = stages.allowed, stages.forced
            part[:] = _match(self.tables, small, *may, np.int32(inner.steps))
        return new

    def one_stage(self, profile: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Values [N, 2] of one hand by the profile, and `values` after it."""
        wins = self._chances(profile) @ self._after(values[:, 0])
        return np.stack([wins, 1 - wins], 1)

    def evaluate(self, profile: np.ndarray) -> np.ndarray:
        """Values [N, 2] of playing by the profile to the end, exactly."""
        wins = self._to_the_end(profile)
        return np.stack([wins, 1 - wins], 1)

    def best_replies(
        self, profile: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Each player's best response to the other for one hand, and its values."""
        best, gains = np.zeros_like(profile), []
        total = self._exact.deal.sum()
        by_seat = zip(
            self._endings(values[:, 0]),
            self._endings(1 - values[:, 1]),
            strict=True,
        )
        for (stages, part, new), (player_endings, opponent_endings) in zip(
            self._by_seat(profile.astype(float), best), by_seat, strict=True
        ):
            k = stages.quits.shape[1]
            stay, go = _our_values(self._exact, part[:, k:], player_endings)
            new[:, :k] = (go > stay) | stages.forced
            player_gain = np.where(new[:, :k] > 0, go, stay).sum((1, 2))
            at_once = part[:, -1:] @ self._exact.deal.sum(1)
            player_gain += at_once[:, 0] * player_endings.opponent_folds[:, 0, 0]
            lost = _plan_values(self._exact, part[:, :k], opponent_endings)
            lost = np.where(stages.allowed, lost, np.inf)
            least = lost.argmin(1)[:, None]
            new[:, k:] = np.arange(2 * k + 1)[:, None] == least
            left = np.take_along_axis(lost, least, 1).sum((1, 2))
            gains.append(np.stack([player_gain, -left], 1) / total)
        return best, values + np.concatenate(gains)

    def evaluate_alone(self, profile: np.ndarray, replies: np.ndarray) -> np.ndarray:
        """Values [N, 2] where each player alone plays by `replies` to the end."""
        values = []
        for player in (0, 1):
            mixed = profile.copy()
            for stages, new, part in self._by_seat(mixed, replies):
                k = stages.quits.shape[1]
                actions = slice(k) if player == 0 else slice(k, None)
                new[:, actions] = part[:, actions]
            wins = self._to_the_end(mixed)
            values.append(1 - wins if player else wins)
        return np.stack(values, 1)

    def _by_seat(self, *profiles: np.ndarray) -> Iterator[tuple[Any, ...]]:
        """Of each seat its stages, and of each profile [M, 3 * K + 1, C]; views."""
        rows = 3 * self.seats[0].quits.shape[1] + 1
        yield self.seats[0], *(profile[: self.most, :rows] for profile in profiles)
        yield self.seats[1], *(profile[self.most :] for profile in profiles)

    def _after(self, wins: np.ndarray) -> np.ndarray:
        """[2 * (total + 1)], our value by our chips, 0 to total, and by the seat."""
        seats = [np.concatenate([[0.0], v, [1.0]]) for v in wins.reshape(2, -1)]
        return np.concatenate(seats)

    def _endings(self, wins: np.ndarray) -> list[Endings]:
        """Of each seat, what endings are worth, less what the state is worth.

        Many small numbers are added: only what differs is.
        """
        values = self._after(wins).reshape(2, -1)
        endings = []
        for stages, later, now in zip(
            self.seats, values[::-1], wins.reshape(2, -1), strict=True
        ):
            now = now[:, None, None]
            folds, away, quits = (later[chips] - now for chips in stages[:3])
            endings.append(
                Endings(folds, away, quits, later[stages.shown] - now[..., None])
            )
        return endings

    def _chances(self, profile: np.ndarray) -> np.ndarray:
        """[N, 2 * (total + 1)], chances of what is after a hand, as in `_after`."""
        chances = np.zeros((2, self.most, 2, self.most + 2))
        state = np.arange(self.most)
        for seat, (stages, part) in enumerate(self._by_seat(profile.astype(float))):
            k = stages.quits.shape[1]
            goes_in, quits, calls = part[:, :k], part[:, k : 2 * k], part[:, 2 * k : -1]
            deal, both = self._exact.deal, _showdowns(self._exact)
            into = chances[seat, :, 1 - seat]
            at_once = part[:, -1] @ deal.sum(1)
            np.add.at(into, (state, stages.opponent_folds[:, 0, 0]), at_once)
            folded = ((1 - goes_in) * ((quits + calls) @ deal)).sum((1, 2))
            np.add.at(into, (state, stages.we_fold[:, 0, 0]), folded)
            quit_in = (goes_in * (quits @ deal)).sum(2)
            np.add.at(into, (state[:, None], stages.quits[..., 0]), quit_in)
            for r in range(3):
                shown = (goes_in * (calls @ both[r].T)).sum((1, 2))
                np.add.at(into, (state, stages.shown[:, r, 0, 0]), shown)
        flat = chances.reshape(2 * self.most, -1)
        return flat / flat.sum(1, keepdims=True)

    def _to_the_end(self, profile: np.ndarray) -> np.ndarray:
        """[N], our chance to win the tournament by the profile."""
        chances = self._chances(profile).reshape(2 * self.most, 2, -1)
        paid = chances[:, :, -1].sum(1)
        step = chances[:, :, 1:-1].reshape(len(paid), -1)
        return np.linalg.solve(np.eye(len(paid)) - step, paid)


def _stages(setting: TournamentSetting, seat: int) -> Stages:
    """Stages for 1 to total - 1 chips of ours.

    Args:
      setting: of the tournament.
      seat: ours; 0: the small blind.
    """
    # Calling the blind, and raises that leave both players chips.
    sizes = range(setting.blinds[1], (setting.total + 1) // 2) if seat else ()
    rows = []
    for chips in range(1, setting.total):
        stacks = [setting.total - chips] * 2
        stacks[seat] = chips

        def after(
            jams: tuple[bool, ...],
            ranks: tuple[int, ...] = (),
            stacks: list[int] = stacks,
        ) -> int:
            """Our chips; two players who put in the same have no odd chip."""
            ((_, left),) = rules.settle(stacks, setting.blinds, Outcome(jams, ranks))
            return left[seat]

        in_by_force = rules.forced(stacks, setting.blinds)
        # Ranks by position.
        win, lose = ((0, 1), (1, 0))[:: -1 if seat else 1]
        shown = [after(_BOTH, ranks) for ranks in ((0, 0), win, lose)]
        leaves_chips = [size < min(stacks) for size in sizes]
        if seat == 0:
            at_once, folds, quits = chips, after(_FOLDS), [after(_JAM_WINS)]
            allowed = [not in_by_force[1], True, False]
        else:
            at_once, folds = after(_FOLDS), after(_JAM_WINS)
            quits = [chips + s * t for s, t in zip(sizes, leaves_chips, strict=True)]
            quits.append(chips)
            # Who is all in cannot quit.
            allowed = [*leaves_chips, False, *leaves_chips, True, not in_by_force[0]]
        rows.append((at_once, folds, quits, shown, allowed, in_by_force[seat]))
    # The shapes of the fields of `Stages`.
    one, offers = (slice(None), None, None), (slice(None), slice(None), None)
    shapes = (one, one, offers, (*offers, None), offers, one)
    columns = (np.array(column) for column in zip(*rows, strict=True))
    return Stages(*(c[shape] for c, shape in zip(columns, shapes, strict=True)))


def _showdowns(tables: HandTables) -> tuple[Any, Any, Any]:
    """[C, C] each: a deal by our hand and the opponent's, and a tie, our win, loss."""
    return tables.tie, tables.win, tables.win.T


def _our_values(tables: HandTables, plans: Any, endings: Endings) -> tuple[Any, Any]:
    """[M, K, C] of losing the blind and of going in, weighted by chances of the rest.

    Args:
      tables: of deals and showdowns; of numpy or of JAX, as all others.
      plans: [M, 2 * K + 1, C], the opponent's.
      endings: Values of endings.
    """
    k = plans.shape[1] // 2
    quits, calls = plans[:, :k], plans[:, k:-1]
    stay = ((quits + calls) @ tables.deal) * endings.we_fold
    go = (quits @ tables.deal) * endings.quits
    for r, both in enumerate(_showdowns(tables)):
        go = go + (calls @ both.T) * endings.shown[:, r]
    return stay, go


def _plan_values(tables: HandTables, goes_in: Any, endings: Endings) -> Any:
    """[M, 2 * K + 1, C], what we win by each of the opponent's plans, and its hand.

    Args:
      tables: of deals and showdowns.
      goes_in: [M, K, C], chances to go in.
      endings: Values of endings.
    """
    numbers = np if isinstance(goes_in, np.ndarray) else jnp
    stay = ((1 - goes_in) @ tables.deal) * endings.we_fold
    quits = (goes_in @ tables.deal) * endings.quits + stay
    calls = stay
    for r, both in enumerate(_showdowns(tables)):
        calls = calls + (goes_in @ both) * endings.shown[:, r]
    folds = tables.deal.sum(0)[None, None] * endings.opponent_folds
    return numbers.concatenate([quits, calls, folds], 1)


@jax.jit
def _match(
    tables: HandTables,
    endings: Endings,
    allowed: jax.Array,
    forced: jax.Array,
    steps: int,
) -> jax.Array:
    """Regret matching+, first we, then the opponent; later steps count for more.

    Args:
      tables: of deals and showdowns.
      endings: Values of endings, float32.
      allowed, forced: see `Stages`.
      steps: how many.

    Returns:
      float32 [M, 3 * K + 1, C], averages with weights 1, 2, 3, …
    """
    shape = endings.we_fold.shape[0], endings.quits.shape[1], tables.deal.shape[0]
    k = shape[1]

    def matched(regret: jax.Array, may: jax.Array) -> jax.Array:
        """Strategies [M, A, C] in the ratio of regrets; equal where there are none."""
        total = regret.sum(1, keepdims=True)
        share = may.astype(regret.dtype)
        equal = share / share.sum(1, keepdims=True)
        return jnp.where(total > 0, regret / jnp.where(total > 0, total, 1), equal)

    def in_probability(regret: jax.Array) -> jax.Array:
        total = regret.sum(0)
        part = jnp.where(total > 0, regret[1] / jnp.where(total > 0, total, 1), 0.5)
        return jnp.where(forced, 1.0, part)

    def step(t: jax.Array, state: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        player_regret, opponent_regret, average = state
        plans = matched(opponent_regret, allowed)
        both = jnp.stack(_our_values(tables, plans, endings))
        go = in_probability(player_regret)
        mean = (1 - go) * both[0] + go * both[1]
        player_regret = jnp.maximum(player_regret + both - mean[None], 0)
        go = in_probability(player_regret)
        lost = _plan_values(tables, go, endings)
        regret = (plans * lost).sum(1, keepdims=True) - lost
        opponent_regret = jnp.where(
            allowed, jnp.maximum(opponent_regret + regret, 0), 0
        )
        now = jnp.concatenate([go, plans], 1)
        weight = (2 / (t + 2)).astype(average.dtype)
        return player_regret, opponent_regret, average + (now - average) * weight

    m, _, c = shape
    shapes = ((2, *shape), (m, 2 * k + 1, c), (m, 3 * k + 1, c))
    start = tuple(jnp.zeros(s, endings.quits.dtype) for s in shapes)
    return jax.lax.fori_loop(0, steps, step, start)[2]
