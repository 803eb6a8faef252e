"""Decoding: one text, a conversation or many texts from a model, their timings, and transcripts of them."""
