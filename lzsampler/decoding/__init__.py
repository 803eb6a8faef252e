"""Decoding: a model writes one text, a conversation or many texts; with their timings and their transcripts."""
