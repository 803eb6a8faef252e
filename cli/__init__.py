"""The command line ``lzs``. The file of a command parses options, calls a library function and prints its result."""
