"""Games of hidden boards, whose payoffs factor through what has succeeded.

Where a failed attempt is seen by nobody but who made it, a history is what each player
did and was told, and the *world*: the moves of both players that succeeded. What one
player did is independent of what the other did, given the world. So the payoffs are
two sparse incidence matrices and a number for each world
(docs/explanation/representations.md).
"""

from spiel_cr.games.phantom.game import PhantomGame, phantom_game

__all__ = ["PhantomGame", "phantom_game"]
