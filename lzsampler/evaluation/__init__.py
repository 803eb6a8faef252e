"""The evaluation: a grid of settings over tasks and prompts, and what became of the texts."""
