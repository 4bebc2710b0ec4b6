"""Guaranteed heads-up value of push/fold, if only one player is restricted to it.

We jam or fold; the opponent may do whatever the rules allow (Miltersen & Sørensen,
AAMAS 2007). No hand reaches a flop with chips left to bet: we are all in or out. On the
small blind we jam or fold, and the opponent calls or folds. On the big blind we face a
fold, a call of the blind, a raise to any size, or a jam; we jam or give up. The
opponent then calls, or gives up the chips that it put in. If we do not raise a called
blind, we count the pot as lost: checking it down could only win more.

All of this is one form of stage. The opponent folds at once or makes one of K *offers*,
which are sizes of its bet. We go in, or lose our blind. If we go in, it calls or quits.
On our small blind there is one offer, the big blind.
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

# Defaults of `guarantee`.
ROUNDS, STEPS = 4, 1000
# There is a raise for every unit, so arrays grow with the cube of the chips.
_MOST_UNITS = 300
# Tolerance of probabilities of winning in the decision processes of the check.
_TOLERANCE = 1e-9
_FOLDS, _JAM_WINS, _BOTH = (False, False), (True, False), (True, True)


class Stages(NamedTuple):
    """Stages of M states with K offers: our chips after each ending, legal plans.

    Attributes:
      opponent_folds: Our chips after the opponent folds at once, int [M, 1, 1].
      we_fold: Our chips after we fold, int [M, 1, 1].
      quits: Our chips after we go in and the opponent quits, int [M, K, 1].
      shown: Our chips after a tie, a win and a loss of ours, int [M, 3, 1, 1].
      allowed: Legal plans of the opponent, see `OneSided`, bool [M, 2 * K + 1, 1].
      forced: Our blind took all our chips, bool [M, 1, 1].
    """

    opponent_folds: np.ndarray
    we_fold: np.ndarray
    quits: np.ndarray
    shown: np.ndarray
    allowed: np.ndarray
    forced: np.ndarray


class Endings(NamedTuple):
    """Our values of the endings; shapes as in `Stages`."""

    opponent_folds: Any
    we_fold: Any
    quits: Any
    shown: Any


class Guarantee(NamedTuple):
    """Value of a push/fold strategy; columns: on the small blind, on the big blind.

    Attributes:
      stacks: Our chips in units, int [M].
      lower: Probability of winning the tournament against a best response, float64 [M,
        2].
      upper: Upper bound on this probability for all push/fold strategies, from a best
        response to the opponent's strategy, float64 [M, 2]; a called blind that we do
        not raise counts as lost.
      gap: Upper bound on the gain of an unrestricted strategy, float64 [M, 2].
      profile: Strategies of both players, see `OneSided`, float32 [2 * M, 3 * K + 1,
        C].
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
    """Compute a push/fold strategy, and its value against an unrestricted opponent.

    Chips are whole units, and so are raises. The value of the strategy is that of the
    opponent's decision process against it. The value V of the unrestricted game
    satisfies V(x) = 1 - V(total - x) with the blinds exchanged. It is therefore at
    least `lower` and at most one minus `lower` of the other seat: the difference is the
    gap.

    Args:
      setting: Tournament of two players; prizes do not matter.
      tables: Tables of two hands.
      rounds: Number of rounds of policy iteration around stages; None: 4.
      steps: Number of steps of regret matching in each stage and round; None: 1000.
      on_round: Function that is called with 2 and each round.

    Raises:
      ValueError: If the setting has three players, or `rounds` or `steps` is not an
        integer of at least 1.
      GameTooLargeError: If there are more than 300 units of chips.
    """
    rounds = ROUNDS if rounds is None else rounds
    steps = STEPS if steps is None else steps
    check_integer(rounds, "rounds", 1)
    check_integer(steps, "steps", 1)
    check_size(setting)
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


def check_size(setting: TournamentSetting) -> None:
    """Raise an error if `guarantee` does not support a setting.

    Raises:
      ValueError: If the setting does not have two players.
      GameTooLargeError: If there are more than 300 units of chips.
    """
    if setting.players != 2:
        raise ValueError(
            f"players={setting.players}: a push/fold guarantee exists only for two "
            f"players; give two stacks"
        )
    if setting.total > _MOST_UNITS:
        raise GameTooLargeError(
            f"total={setting.total} units of chips and as many raises are more than "
            f"{_MOST_UNITS}; round stacks to multiples of the small blind"
        )


class OneSided:
    """The one-sided tournament as a stochastic game, in which we are player 0.

    Implements `outer.StochasticGame`. The N = 2 * M states are our chips, 1 to M, first
    on the small blind, then on the big blind. Values [N, 2] are probabilities of
    winning the tournament. A profile is float32 [N, 3 * K + 1, C] by class of hands:
    our probability of going in after each offer; then the opponent's probabilities of
    its plans: to offer k and quit, to offer k and call, to fold at once. The last offer
    is all chips. On our small blind K is 1, and the rest of the array is not used.
    """

    def __init__(self, setting: TournamentSetting, tables: HandTables) -> None:
        """Enumerate all stages."""
        self.most = setting.total - 1
        self.tables = tables
        self._exact = HandTables(*(t.astype(float) for t in tables))
        self.seats = (_stages(setting, 0), _stages(setting, 1))

    def start_values(self) -> np.ndarray:
        """Return the shares of the chips, [N, 2]."""
        share = np.tile(np.arange(1, self.most + 1) / (self.most + 1), 2)
        return np.stack([share, 1 - share], 1)

    def start_profile(self) -> np.ndarray:
        """Return uniform strategies over the legal choices, [N, 3 * K + 1, C]."""
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
        """Run regret matching within every stage, with fixed values after the hand.

        Args:
          profile: Profile of the required shape, [N, 3 * K + 1, C]; its contents are
            not used.
          values: Values after the hand, [N, 2].
          inner: Number of steps.
          begin: Not used.
        """
        new = profile.copy()
        by_seat = self._endings(values[:, 0])
        for (stages, part), endings in zip(self._by_seat(new), by_seat, strict=True):
            small = Endings(*(np.asarray(w, np.float32) for w in endings))
            may = stages.allowed, stages.forced
            part[:] = _match(self.tables, small, *may, np.int32(inner.steps))
        return new

    def one_stage(self, profile: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return values [N, 2] of one hand by the profile, with `values` after it."""
        wins = self._chances(profile) @ self._after(values[:, 0])
        return np.stack([wins, 1 - wins], 1)

    def evaluate(self, profile: np.ndarray) -> np.ndarray:
        """Return values [N, 2] of playing by the profile to the end, exactly."""
        wins = self._to_the_end(profile)
        return np.stack([wins, 1 - wins], 1)

    def best_replies(
        self, profile: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return each player's best response for one hand, and its values."""
        best, gains = np.zeros_like(profile), []
        total = self._exact.deal.sum()
        by_seat = zip(
            self._endings(values[:, 0]), self._endings(1 - values[:, 1]), strict=True
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
        """Return values [N, 2] if each player alone plays by `replies` to the end."""
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
        """Yield the stages of each seat with views of profiles, [M, 3 * K + 1, C]."""
        rows = 3 * self.seats[0].quits.shape[1] + 1
        yield self.seats[0], *(profile[: self.most, :rows] for profile in profiles)
        yield self.seats[1], *(profile[self.most :] for profile in profiles)

    def _after(self, wins: np.ndarray) -> np.ndarray:
        """Return our chance of winning by seat and chips, [2 * (total + 1)]."""
        seats = [np.concatenate([[0.0], v, [1.0]]) for v in wins.reshape(2, -1)]
        return np.concatenate(seats)

    def _endings(self, wins: np.ndarray) -> list[Endings]:
        """Return the values of endings minus the value of the state, for each seat.

        Many small numbers are added in float32, so the common part is subtracted first.
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
        """Return probabilities of next states, [N, 2 * (total + 1)]; see `_after`."""
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
        """Return our probability of winning the tournament by the profile, [N]."""
        chances = self._chances(profile).reshape(2 * self.most, 2, -1)
        paid = chances[:, :, -1].sum(1)
        step = chances[:, :, 1:-1].reshape(len(paid), -1)
        return np.linalg.solve(np.eye(len(paid)) - step, paid)


def _stages(setting: TournamentSetting, seat: int) -> Stages:
    """Return stages for 1 to total - 1 chips of ours.

    Args:
      setting: Setting of the tournament.
      seat: Our seat; 0: the small blind, 1: the big blind.
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
            """Return our chips after an outcome; equal bets leave no odd chip."""
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
            # A player who is all in cannot quit.
            allowed = [*leaves_chips, False, *leaves_chips, True, not in_by_force[0]]
        rows.append((at_once, folds, quits, shown, allowed, in_by_force[seat]))
    # The shapes of the fields of `Stages`.
    one, offers = (slice(None), None, None), (slice(None), slice(None), None)
    shapes = (one, one, offers, (*offers, None), offers, one)
    columns = (np.array(column) for column in zip(*rows, strict=True))
    return Stages(*(c[shape] for c, shape in zip(columns, shapes, strict=True)))


def _showdowns(tables: HandTables) -> tuple[Any, Any, Any]:
    """Return probabilities of a deal and a tie, our win, our loss; [C, C] each.

    Rows are our hands, columns the opponent's.
    """
    return tables.tie, tables.win, tables.win.T


def _our_values(tables: HandTables, plans: Any, endings: Endings) -> tuple[Any, Any]:
    """Compute the values of losing the blind and of going in, [M, K, C] each.

    The values are weighted by the probabilities of the opponent's hands and plans.

    Args:
      tables: Probabilities of deals and showdowns; arrays of numpy or JAX, like the
        others.
      plans: Probabilities of the opponent's plans, [M, 2 * K + 1, C].
      endings: Our values of endings.
    """
    k = plans.shape[1] // 2
    quits, calls = plans[:, :k], plans[:, k:-1]
    stay = ((quits + calls) @ tables.deal) * endings.we_fold
    go = (quits @ tables.deal) * endings.quits
    for r, both in enumerate(_showdowns(tables)):
        go = go + (calls @ both.T) * endings.shown[:, r]
    return stay, go


def _plan_values(tables: HandTables, goes_in: Any, endings: Endings) -> Any:
    """Compute our value of each of the opponent's plans by its hand, [M, 2 * K + 1, C].

    Args:
      tables: Probabilities of deals and showdowns.
      goes_in: Our probabilities of going in, [M, K, C].
      endings: Our values of endings.
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
    """Run regret matching+ with alternating updates and linear averaging.

    We are updated first, then the opponent.

    Args:
      tables: Probabilities of deals and showdowns.
      endings: Our values of endings, float32.
      allowed: Legal plans of the opponent, see `Stages`.
      forced: States in which our blind took all our chips, see `Stages`.
      steps: Number of steps.

    Returns:
      Averages with weights 1, 2, 3, …; float32 [M, 3 * K + 1, C].
    """
    shape = endings.we_fold.shape[0], endings.quits.shape[1], tables.deal.shape[0]
    k = shape[1]

    def matched(regret: jax.Array, may: jax.Array) -> jax.Array:
        """Return strategies [M, A, C] in proportion to regrets, or uniform."""
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
