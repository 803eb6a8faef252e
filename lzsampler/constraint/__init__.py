"""Constraints on generated text: grammars, and the bytes of a vocabulary that they need."""
