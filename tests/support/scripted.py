"""Bots that play by a function and record their calls."""

import numpy as np
import pyspiel
import pytest


class Scripted(pyspiel.Bot):
    """A bot that chooses by a function of the state, without probabilities."""

    def __init__(self, choose):
        pyspiel.Bot.__init__(self)
        self.choose = choose
        self.restarts = 0
        self.heard = []

    def restart(self):
        self.restarts += 1

    def inform_action(self, state, player, action):
        self.heard.append((player, action))

    def step(self, state):
        return self.choose(state)


class Opinionated(Scripted):
    """A bot that returns a fixed policy, valid or not, and never steps."""

    def __init__(self, policy, player=0):
        Scripted.__init__(self, lambda state: pytest.fail("was asked to step"))
        self.policy, self.player = policy, player

    def player_id(self):
        return self.player

    def provides_policy(self):
        return self.policy is not None

    def get_policy(self, state):
        return self.policy


def drawing(policy, seed):
    """Return a function for `Scripted` that samples from a policy."""
    random = np.random.default_rng(seed)

    def choose(state):
        odds = policy.action_probabilities(state)
        return int(random.choice(list(odds), p=list(odds.values())))

    return choose
