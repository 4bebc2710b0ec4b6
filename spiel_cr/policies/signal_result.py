"""What solving a signal game gives: as of a compiled game, but for what holds it."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common import atomic
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.signals.game import SignalGame
from spiel_cr.policies import signal_files as files
from spiel_cr.policies.result import Behaviours
from spiel_cr.policies.signal_policy import SignalPolicy


@dataclasses.dataclass(frozen=True)
class HeldBySignals:
    """Strategies by the public decisions and signals of a game; see `result.Held`.

    Attributes:
      signals: the signal game.
      form: the same in sequence form.
      dtype: of the arithmetic, and so of the strategies and their file.
    """

    signals: SignalGame
    form: SequenceForm
    dtype: np.dtype

    @property
    def game(self) -> pyspiel.Game:
        """The OpenSpiel game."""
        return self.signals.game

    def identity(self) -> tuple[str | None, str]:
        """See `result.Held`."""
        return "signals", files.fingerprint(self.signals)

    def policy(self, behaviour: Behaviours | None) -> SignalPolicy:
        """A policy that is read state by state, and is no table."""
        assert behaviour is not None
        first, second = behaviour
        kind = self.dtype
        return SignalPolicy(
            self.signals,
            (first.astype(kind, copy=False), second.astype(kind, copy=False)),
        )

    def write(
        self,
        path: atomic.Path,
        average: Behaviours | None,
        metadata: Mapping[str, Any],
    ) -> None:
        """See `result.Held`, and `files.save_policy`."""
        files.save_policy(path, self.policy(average), metadata)
