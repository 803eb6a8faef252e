"""Constraints on what is generated: grammars, and the bytes of a vocabulary that they need."""
