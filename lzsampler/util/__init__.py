"""General helpers: files and locks, signals and threads, statistics, CPU cores, JSON."""
