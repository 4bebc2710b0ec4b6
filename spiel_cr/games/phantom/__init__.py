"""Phantom games, whose payoffs factor through the successful moves.

If a rejected move is only visible to the player that attempted it, a history consists
of both players' attempts and answers, and of the *world*: the successful moves of both
players. Given the world, the players' attempts are independent of each other. Therefore
the payoffs are two sparse incidence matrices and one number for each world
(docs/explanation/representations.md).
"""

from spiel_cr.games.phantom.game import PhantomGame, phantom_game

__all__ = ["PhantomGame", "phantom_game"]
