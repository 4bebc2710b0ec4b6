"""What a player believes, as particles on a game's rules on arrays.

The same filter as `responses.particles`, for games with rules on arrays: continuations
are weighted, drawn and compared side by side, and hidden moves are redrawn by many
Metropolis-Hastings steps at once.
"""

import zlib

import numpy as np
import pyspiel

from spiel_cr.common import draws
from spiel_cr.common.checks import check_choice, check_seed
from spiel_cr.compilation.tree import TERMINAL
from spiel_cr.compilation.vectorised import VectorisedGame
from spiel_cr.responses.arrays import replay
from spiel_cr.responses.arrays.replay import Histories, OddsOf, View
from spiel_cr.responses.particles import ParticleConfig, effective_size

# Continuations that are built in one step, per particle.
_TRIED = 10
# Histories whose continuations are all looked at, and the share of the draws that moves
# get which fit the view at none of them.
_LOOKED_AT, _DOUBTED = 3, 0.1
# Below this share of the particles a step is tried again, so often at most; and where
# nothing at all was found.
_FEW, _RETRIES, _MOST_RETRIES = 0.1, 3, 12
# Below this effective share of the particles hidden moves are redrawn.
_UNLIKE = 0.5


class RulesBelief:
    """The belief of one player, kept up to date along a match, in particles.

    As `StatePosterior` with particles; all histories are kept while they are no more
    than the particles, and then the belief is exact.

    Attributes:
      histories: with the view of the last `update`; none where none was found.
      weights: float64 [n], their probabilities; sum to 1.
      complete: no history was ever dropped.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        rules: VectorisedGame,
        player: int,
        *,
        odds_of: OddsOf = replay.uniform_odds,
        config: ParticleConfig | None = None,
        seed: int = 0,
    ) -> None:
        """Knows nothing yet.

        Args:
          game: sequential, two players.
          rules: the same game on arrays.
          player: whose view, 0 or 1.
          odds_of: the opponent's policy.
          config: how many particles, and how often each is redrawn.
          seed: of all draws; a stage of the view has its own random numbers.

        Raises:
          ValueError: a bad player or seed.
        """
        check_choice(player, "player", (0, 1))
        self._game, self._rules, self._player = game, rules, player
        self._odds_of = odds_of
        self._config, self._seed = config or ParticleConfig(), check_seed(seed)
        self._longest = game.max_game_length() + game.max_chance_nodes_in_history()
        self.restart()

    def restart(self) -> None:
        """A new match."""
        self._view: View | None = None
        self._moves: list[int] = []
        self._secret = np.zeros(self._longest, bool)
        self.histories = replay.root(self._rules, self._longest)
        self.weights = np.ones(1)
        self.complete = True

    @property
    def states(self) -> np.ndarray:
        """The histories, as states of the rules."""
        return self.histories.states

    @property
    def approximate(self) -> bool:
        """Whether histories were dropped."""
        return not self.complete

    @property
    def effective_size(self) -> float:
        """See `particles.effective_size`."""
        return effective_size(self.weights)

    def update(self, state: pyspiel.State) -> None:
        """Takes in what the player has seen since; any match may be given.

        Args:
          state: the player is to act there.

        Raises:
          ValueError: the player is not to act.
        """
        if state.current_player() != self._player:
            raise ValueError(
                f"state: player {state.current_player()} is to act there; a belief is "
                f"formed at player {self._player}'s own decisions"
            )
        view = self._view_of(state)
        known = self._view
        done = 0 if known is None else len(known.seen)
        if known is not None and not (
            done <= len(view.seen)
            and np.array_equal(known.seen, view.seen[:done])
            and known.done == view.done[: done - 1]
        ):
            self.restart()
            done = 0
        for number in range(done, len(view.seen)):
            # Where nothing was found nothing is found later.
            if len(self.histories.length):
                self._follow(View(view.seen[: number + 1], view.done[:number]))
        self._view = view

    def _view_of(self, state: pyspiel.State) -> View:
        """The player's information states at its decisions, and what it did there.

        The match is played on the rules; of its states only this is looked at.
        """
        rules, player = self._rules, self._player
        rows, seen, done = rules.new_initial_states(), [], []
        for action in [*state.history(), None]:
            if rules.current_player(rows)[0] == player:
                seen.append(rules.information_state(rows, player).reshape(-1))
                if action is not None:
                    done.append(action)
            if action is not None:
                rows = rules.child(rows, np.array([action]))
        return View(np.stack(seen), done)

    def _follow(self, view: View) -> None:
        """From the decision before the last one of a view, or the root, to the last."""
        number, config = len(view.seen) - 1, self._config
        key = zlib.crc32(np.ascontiguousarray(view.seen[-1]).tobytes())
        random = np.random.default_rng([self._seed, self._player, number, key])
        before, weights, complete = self.histories, self.weights, self.complete
        found, new, whole = self._step(before, weights, view, random)
        whole = whole and complete
        for retry in range(_MOST_RETRIES):
            enough = len(new) >= _FEW * config.particles
            if whole or enough or (len(new) and retry >= _RETRIES):
                break
            if not complete and number:
                earlier = View(view.seen[:-1], view.done[:-1])
                before, weights = self._redrawn(before, weights, earlier, random)
            more, also, _ = self._step(before, weights, view, random)
            found = replay.joined([found, more])
            new = np.concatenate([new, also])
        if len(new):
            found, new = _merged(found, new)
            kept, new = draws.thin(new, config.particles, random)
            whole = whole and len(kept) == len(found.length)
            found, new = found.take(kept), new / new.sum()
            self._secret |= _differs(found, self._player)
            alike = effective_size(new) < _UNLIKE * config.particles
            if alike and not whole:
                found, new = self._redrawn(found, new, view, random)
        self.histories, self.weights, self.complete = found, new, whole

    def _step(
        self,
        before: Histories,
        weights: np.ndarray,
        view: View,
        random: np.random.Generator,
    ) -> tuple[Histories, np.ndarray, bool]:
        """Histories with this view, their weights, and whether these are all."""
        rules, player, most = self._rules, self._player, self._config.particles
        front, whole = before.take(np.arange(len(weights))), True
        if len(view.seen) > 1:
            count = len(weights)
            action = np.full(count, view.done[len(view.seen) - 2])
            mover = np.full(count, player)
            front = front.moved(rules, action, mover, np.ones(count))
        found, found_weights = [], []
        while True:
            mover = rules.current_player(front.states)
            mine = np.flatnonzero(mover == player)
            seen = rules.information_state(front.states[mine], player)
            fit = mine[(seen == view.seen[-1]).all(axis=1)]
            found.append(front.take(fit))
            found_weights.append(weights[fit])
            on = np.flatnonzero((mover != player) & (mover != TERMINAL))
            if not len(on):
                break
            front, weights, mover = front.take(on), weights[on], mover[on]
            odds = replay.hidden_odds(rules, front.states, mover, self._odds_of)
            row, action = np.nonzero(odds)
            weight = weights[row] * odds[row, action]
            kept, new = np.arange(len(row)), weight
            if len(row) > _TRIED * most:
                guess = self._guess(front.states, mover, row, action, weight, view)
                kept, new = draws.thin(weight * guess, _TRIED * most, random)
                new = new / guess[kept]
                whole = False
            row, action, weights = row[kept], action[kept], new
            front = front.take(row).moved(rules, action, mover[row], odds[row, action])
        return replay.joined(found), np.concatenate(found_weights), whole

    def _guess(
        self,
        states: np.ndarray,
        mover: np.ndarray,
        row: np.ndarray,
        action: np.ndarray,
        weight: np.ndarray,
        view: View,
    ) -> np.ndarray:
        """float64 [pairs], by how much each is drawn more or less than by weight.

        All moves of a few histories are looked at. A move that fits the view after none
        of them, for the same mover, is unlikely to fit elsewhere.
        """
        spread = np.linspace(0, len(states) - 1, min(_LOOKED_AT, len(states)))
        looked = np.flatnonzero(np.isin(row, spread.astype(int)))
        after = self._rules.child(states[row[looked]], action[looked])
        next_mover = self._rules.current_player(after)
        fits = next_mover != TERMINAL
        mine = np.flatnonzero(next_mover == self._player)
        seen = self._rules.information_state(after[mine], self._player)
        fits[mine] = (seen == view.seen[-1]).all(axis=1)
        width = int(action.max()) + 1
        key = (mover[row] - mover.min()) * width + action
        doubted = np.setdiff1d(key[looked], key[looked[fits]])
        bad = np.isin(key, doubted)
        rest, most = weight[bad].sum(), weight[~bad].sum()
        if not rest or not most:
            return np.ones(len(row))
        return np.where(bad, min(1.0, _DOUBTED * most / rest), 1.0)

    def _redrawn(
        self,
        given: Histories,
        weights: np.ndarray,
        view: View,
        random: np.random.Generator,
    ) -> tuple[Histories, np.ndarray]:
        """As many histories as may be kept, moved by Metropolis-Hastings steps.

        Each step proposes another hidden move at one place, from its mover's policy, or
        two hidden moves exchanged. Most are refused. So all steps that a history still
        has are proposed from where it is now and looked at side by side, and those
        after the first that is taken are proposed anew: the same chain as step by step.
        """
        count = self._config.particles
        trajectories = given.take(draws.systematic(weights, count, random.random()))
        places = np.flatnonzero(self._secret)
        left = np.full(count, self._config.redraws)
        while len(places) and left.any():
            trajectory = np.repeat(np.arange(count), left)
            proposed, change = self._proposed(trajectories, trajectory, places, random)
            kept = np.flatnonzero(proposed.length > 0)
            which, new = replay.replayed(
                self._rules, proposed.take(kept), view, self._player, self._odds_of
            )
            which = kept[which]
            old = trajectories.odds[trajectory[which]]
            ratio = _ratio(old, new.odds, change[which])
            taken = np.flatnonzero(random.random(len(which)) < ratio)
            # The first of each trajectory.
            movers, first = np.unique(trajectory[which[taken]], return_index=True)
            starts = np.cumsum(left) - left
            used = which[taken[first]] - starts[movers] + 1
            for part, fresh in zip(trajectories, new, strict=True):
                part[movers] = fresh[taken[first]]
            rest = left[movers] - used
            left = np.zeros(count, np.int64)
            left[movers] = rest
        return _merged(trajectories, np.full(count, 1 / count))

    def _proposed(
        self,
        trajectories: Histories,
        trajectory: np.ndarray,
        places: np.ndarray,
        random: np.random.Generator,
    ) -> tuple[Histories, np.ndarray]:
        """A proposal for each entry of `trajectory`; of length 0 where it is none.

        Also int64 [n, 2], the places that were drawn by their movers' policies, or -1.
        A third of the proposals exchange two moves, a third have one drawn anew, and a
        third two of them.
        """
        new = trajectories.take(trajectory)
        rows, count = np.arange(len(trajectory)), len(trajectory)
        pair = np.sort(places[random.integers(len(places), size=(count, 2))], axis=1)
        kind = random.integers(3, size=count)
        there = (pair < new.length[:, None]) & (
            new.mover[rows[:, None], pair] != self._player
        )
        fit = there.all(axis=1)
        swap = np.flatnonzero(fit & (kind == 0))
        first, second = pair[swap].T
        one, other = new.action[swap, first], new.action[swap, second]
        new.action[swap, first], new.action[swap, second] = other, one
        # One place, if both are the same.
        pair[kind == 1, 0] = pair[kind == 1, 1]
        pair[kind == 0] = -1
        for which in (0, 1):
            drawn = np.flatnonzero(fit & (kind > 0))
            if which:
                drawn = drawn[pair[drawn, 0] != pair[drawn, 1]]
            place = pair[drawn, which]
            new.action[drawn, place] = self._drawn(new.take(drawn), place, random)
        same = (new.action == trajectories.action[trajectory]).all(axis=1)
        new.length[~fit | same] = 0
        return new, pair

    def _drawn(
        self, histories: Histories, place: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """int64 [n], moves at some place of each history, by their mover's policy."""
        rules, count = self._rules, len(place)
        found = np.zeros(count, np.int64)
        points = random.random(count)
        states = np.repeat(rules.new_initial_states(), count, axis=0)
        left = np.arange(count)
        for step in range(int(place.max(initial=-1)) + 1):
            mover = rules.current_player(states)
            good = mover == histories.mover[left, step]
            here = np.flatnonzero(good & (place[left] == step))
            if len(here):
                odds = replay.hidden_odds(
                    rules, states[here], mover[here], self._odds_of
                )
                # Moves that were drawn before may leave none.
                some = np.flatnonzero(odds.sum(axis=1) > 0)
                at = left[here[some]]
                found[at] = draws.choose(odds[some], points[at])
            on = np.flatnonzero(good & (place[left] > step))
            left = left[on]
            action = histories.action[left, step].astype(np.int64)
            states = rules.child(states[on], action)
        return found


def _ratio(old: np.ndarray, new: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """float64 [n], with what chance a proposal is taken, at most 1 or more.

    Args:
      old, new: float64 [n, T], probabilities of the moves.
      drawn: int64 [n, 2], the places that were drawn by their probabilities, which are
        in the proposal's, too; -1: none.
    """
    change = np.log(new) - np.log(old)
    for place in drawn.T:
        rows = np.flatnonzero(place >= 0)
        change[rows, place[rows]] = 0.0
    return np.exp(np.minimum(change.sum(axis=1), 0.0))


def _differs(histories: Histories, player: int) -> np.ndarray:
    """bool [T], where hidden moves are different."""
    hidden = (histories.mover != player) & (histories.mover != replay.NOBODY)
    move = np.where(hidden, histories.action, -1)
    highest = move.max(axis=0, initial=-1)
    lowest = np.where(hidden, move, np.iinfo(np.int32).max).min(axis=0)
    return (highest >= 0) & (lowest < highest)


def _merged(histories: Histories, weights: np.ndarray) -> tuple[Histories, np.ndarray]:
    """Equal histories joined; weights are added up."""
    moves = np.where(histories.mover == replay.NOBODY, -1, histories.action)
    _, first, which = np.unique(moves, axis=0, return_index=True, return_inverse=True)
    total = np.bincount(which.reshape(-1), weights)
    return histories.take(first), total
