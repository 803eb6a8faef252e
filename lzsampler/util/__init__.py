"""Helpers that know nothing of sampling: files and locks, signals and threads, statistics, cores, JSON."""
