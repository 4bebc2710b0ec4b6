"""What solving and resolving do with signals that may be played alike at no loss."""

from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.gameshrink.equitable import lossless_partition
from spiel_cr.gameshrink.partition import coarsen
from spiel_cr.signals.game import HandKernel, SignalGame


def merged(signals: SignalGame) -> SignalGame:
    """The game without distinctions that make no difference, where these are found.

    Kernels of hands, which know of suits already, and deals that are not equally likely
    are left as they are.
    """
    if any(isinstance(kernel, HandKernel) for kernel in signals.kernels):
        return signals
    try:
        partition = lossless_partition(signals)
    except (InvalidGameError, GameTooLargeError):  # no exact test for this game
        return signals
    before = [signals.num_signals(player) for player in range(2)]
    if [partition.num_classes(player) for player in range(2)] == before:
        return signals
    return coarsen(signals, partition)
