"""The evaluation: a grid of settings over tasks and prompts, and its results."""
