"""The command line ``lzs``: one file for each command, which parses, calls one library function and prints."""
