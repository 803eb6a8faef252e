"""`python -m lzsampler` is the command `lzs`."""

from importlib import import_module

# Not an import statement: the command line is a package of its own in the source tree, and a part of this one only
# where it is installed.
import_module("lzsampler.cli.main").main()
