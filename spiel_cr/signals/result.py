"""What solving a signal game gives: as of a compiled game, but for what holds it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common import atomic
from spiel_cr.policies.result import Result
from spiel_cr.sequence_form.layout import SequenceForm
from spiel_cr.signals import files
from spiel_cr.signals.game import SignalGame
from spiel_cr.signals.policy import SignalPolicy


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class SignalResult(Result):
    """What solving or resolving a signal game gave; see `Result`.

    Attributes:
      signals: the signal game.
      laid_out: the same in sequence form.
      dtype: of the arithmetic, and so of the strategies and their file.
    """

    signals: SignalGame
    laid_out: SequenceForm
    dtype: np.dtype

    @property
    def game(self) -> pyspiel.Game:
        """The OpenSpiel game."""
        return self.signals.game

    @property
    def form(self) -> SequenceForm:
        """The signal game in sequence form."""
        return self.laid_out

    def policy(self, behaviour: tuple[np.ndarray, np.ndarray]) -> SignalPolicy:
        """A policy that is read state by state, and is no table."""
        return SignalPolicy(self.signals, behaviour)

    def write(self, path: atomic.Path, metadata: Mapping[str, Any]) -> None:
        """Writes the average strategy; see `files.save_policy`.

        Args:
          path: the file.
          metadata: what else it is to say; JSON values.

        Raises:
          OSError: the file cannot be written; the old one is as it was.
        """
        files.save_policy(path, self.policy(self.average), metadata)
