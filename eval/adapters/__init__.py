"""Solver adapters: a common interface to the algorithms of spiel_cr and OpenSpiel."""
