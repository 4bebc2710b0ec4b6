"""Bots that play by a function, and write down what they are told."""

import numpy as np
import pyspiel
import pytest


class Scripted(pyspiel.Bot):
    """Chooses by a function of the state; gives no probabilities."""

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
    """Gives a fixed policy, right or wrong, or none, and never steps."""

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
    """Draws from a policy, for `Scripted`."""
    random = np.random.default_rng(seed)

    def choose(state):
        odds = policy.action_probabilities(state)
        return int(random.choice(list(odds), p=list(odds.values())))

    return choose
