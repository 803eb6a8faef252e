"""What several rooms need and that knows none of them: files, statistics, the marks of reasoning."""
