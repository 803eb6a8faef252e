"""`python -m lzsampler` runs the command `lzs`."""

from importlib import import_module

# The module is found at run time, because only the installed package contains ``lzsampler.cli``. In the source tree it
# is the package ``cli``.
import_module("lzsampler.cli.main").main()
