"""The audit: finds repetition in one text, in files of any size, and the differences between two runs."""
