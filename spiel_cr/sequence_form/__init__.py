"""spiel_cr/sequence_form."""
