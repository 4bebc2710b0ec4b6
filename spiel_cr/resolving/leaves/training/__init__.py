"""Training of counterfactual value networks.

Data are public states at which a game's lookaheads end, with ranges: random ones, then
those that the resolver met. The project's own solver says what they are worth, at many
ranges at once. `train_values` fits a set network to that.
"""

from spiel_cr.resolving.leaves.training.training import (
    TrainingPoint,
    TrainingResult,
    train_values,
)
from spiel_cr.resolving.leaves.training.training_config import TrainingConfig

__all__ = ["TrainingConfig", "TrainingPoint", "TrainingResult", "train_values"]
