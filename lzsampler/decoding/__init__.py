"""Text generation: one text, a conversation or many texts at a time, with timings and transcripts."""
