"""The audit: what repeats in one text, in files of any size, and in one run and not in another."""
