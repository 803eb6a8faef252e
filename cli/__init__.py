"""The command line ``lzs``: one command a file; each parses, calls one library function and prints."""
