"""What several packages need: files and locks, statistics, cores, the marks of reasoning, the table of reports."""
