"""A jam-or-fold tournament as a stochastic game, in which one hand is a stage.

A state consists of the chips of all players by position; positions move on after each
hand. When a player is eliminated, a smaller tournament is left, which is solved before.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse

from spiel_cr.push_fold import rules
from spiel_cr.push_fold.chip_model import chip_model
from spiel_cr.push_fold.engine import Engine, InnerSettings


class TournamentSetting(NamedTuple):
    """Settings of a tournament.

    Attributes:
      total: Units of chips of all players.
      players: Number of players at the table, 2 or 3.
      blinds: Small and big blind, in units.
      prizes: Prizes of the places from the first, one per player, in any unit.
    """

    total: int
    players: int
    blinds: tuple[int, int]
    prizes: tuple[float, ...]


class TournamentGame:
    """States of a tournament, transitions between them, and values of hands.

    Implements `outer.StochasticGame`. Profiles are float32 [N, I, C], probabilities to
    jam per state, infoset (`rules.infosets`) and class of hands. Values are float64 [N,
    n], expected prizes by position.
    """

    def __init__(
        self, setting: TournamentSetting, engine: Engine, rest: np.ndarray | None = None
    ) -> None:
        """Enumerate all states.

        Args:
          setting: Settings of the tournament.
          engine: Arithmetic of hands.
          rest: Values of the tournament with one player less, float64 [M, n - 1]; None
            with two players.
        """
        self.setting, self.engine = setting, engine
        self.stacks = rules.all_stacks(setting.total, setting.players)
        self._later, self._fixed = _follow(setting, self.stacks, rest)
        self.forced = np.array([rules.forced(s, setting.blinds) for s in self.stacks])

    @property
    def infosets(self) -> tuple[tuple[bool, ...], ...]:
        """Jams and folds before each decision."""
        return rules.infosets(self.setting.players)

    def start_values(self) -> np.ndarray:
        """Return the values of the independent chip model, [N, n]."""
        return chip_model(self.stacks, np.array(self.setting.prizes))

    def start_profile(self) -> np.ndarray:
        """Return uniform play, [N, I, C]; players that are forced all in jam."""
        shape = (len(self.stacks), len(self.infosets), len(self.engine.tables.deal))
        profile = np.full(shape, 0.5, np.float32)
        profile[self.forced] = 1
        return profile

    def play(
        self, profile: np.ndarray, values: np.ndarray, inner: InnerSettings, begin: int
    ) -> np.ndarray:
        """Do fictitious play within every hand, with fixed values after it.

        Args:
          profile: Averages to continue from, [N, I, C].
          values: Values of the states after the hand, [N, n].
          inner: Numbers of steps.
          begin: Number of steps that the averages represent.

        Returns:
          The new averages: the one before times t / (t + 1), plus the best response
            over t + 1, with t from `begin`.
        """
        payoffs = self._payoffs(values)
        return self.engine.play(profile, payoffs, self.forced, inner, begin)

    def one_stage(self, profile: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Return values [N, n] of one hand by the profile, and `values` after it."""
        payoffs = self._outcome_values(values)
        return np.einsum("so,sop->sp", self.engine.outcomes(profile), payoffs)

    def evaluate(self, profile: np.ndarray) -> np.ndarray:
        """Return values [N, n] of playing by the profile to the end, exactly.

        They solve a linear system of all states and positions.
        """
        return self._solve(self.engine.outcomes(profile))

    def evaluate_alone(self, profile: np.ndarray, replies: np.ndarray) -> np.ndarray:
        """Return values [N, n] of playing by `replies` while the others do not."""
        ends = []
        for player in range(self.setting.players):
            mixed = profile.copy()
            infosets = [len(before) == player for before in self.infosets]
            mixed[:, infosets] = replies[:, infosets]
            ends.append(self.engine.outcomes(mixed))
        return self._solve(np.stack(ends, axis=2))

    def best_replies(
        self, profile: np.ndarray, values: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return best responses [N, I, C] and values [N, n], one hand ahead."""
        payoffs = self._payoffs(values)
        best, gain = self.engine.best_replies(profile, payoffs, self.forced)
        return best, values + gain

    def _payoffs(self, values: np.ndarray) -> np.ndarray:
        """Return outcomes relative to the states' values, so that numbers are small."""
        return (self._outcome_values(values) - values[:, None]).astype(np.float32)

    def _outcome_values(self, values: np.ndarray) -> np.ndarray:
        """Return values of outcomes, float64 [N, O, n], from the next states [N, n]."""
        return self._fixed + (self._later @ values.ravel()).reshape(self._fixed.shape)

    def _solve(self, ends: np.ndarray) -> np.ndarray:
        """Return values [N, n] given chances of outcomes, [N, O] or [N, O, n] per
        player.
        """
        states, outcomes, n = self._fixed.shape
        chance = np.broadcast_to(
            ends if ends.ndim == 3 else ends[:, :, None], self._fixed.shape
        )
        chance = chance / chance.sum(axis=1, keepdims=True)
        rows = np.repeat(np.arange(states), outcomes * n) * n + np.tile(
            np.arange(n), states * outcomes
        )
        weights = scipy.sparse.coo_array(
            (chance.ravel(), (rows, np.arange(chance.size))), (states * n, chance.size)
        ).tocsr()
        step = (weights @ self._later).toarray()
        paid = weights @ self._fixed.ravel()
        values: np.ndarray = np.linalg.solve(np.eye(len(step)) - step, paid)
        return values.reshape(states, n)


def _follow(
    setting: TournamentSetting, stacks: np.ndarray, rest: np.ndarray | None
) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Return where hands lead: outcome o is worth fixed + later · values to a player.

    Returns:
      later, sparse [N * O * n, N * n]; and fixed, float64 [N, O, n], of players that
      are out, and of smaller tournaments.
    """
    n, ends = setting.players, rules.outcomes(setting.players)
    index = {tuple(s): k for k, s in enumerate(stacks.tolist())}
    smaller = {}
    if n > 2:
        less = rules.all_stacks(setting.total, n - 1).tolist()
        smaller = {tuple(s): k for k, s in enumerate(less)}
    fixed = np.zeros((len(stacks), len(ends), n))
    entries: list[tuple[int, int, float]] = []
    for (s, before), (o, end) in (
        (a, b) for a in enumerate(stacks.tolist()) for b in enumerate(ends)
    ):
        for chance, after in rules.settle(before, setting.blinds, end):
            left, position, prize = rules.move_on(before, after, setting.prizes)
            for p, to in enumerate(position):
                if to < 0 or len(left) == 1:
                    fixed[s, o, p] += chance * prize[p]
                elif len(left) == n:
                    row = (s * len(ends) + o) * n + p
                    entries.append((row, index[left] * n + to, chance))
                else:
                    assert rest is not None
                    fixed[s, o, p] += chance * rest[smaller[left], to]
    rows, columns, data = (np.array(x) for x in zip(*entries, strict=True))
    shape = (fixed.size, len(stacks) * n)
    later = scipy.sparse.coo_array((data, (rows, columns)), shape).tocsr()
    return later, fixed
