"""Loading of games, their batched rules and their declarations."""

__all__: list[str] = []
