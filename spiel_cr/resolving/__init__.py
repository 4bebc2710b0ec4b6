"""spiel_cr/resolving."""
