"""Decoding: one text or many from a model, timed, and written down as transcripts."""
