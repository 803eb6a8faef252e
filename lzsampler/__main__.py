"""`python -m lzsampler` is the command `lzs`."""

from importlib import import_module

# `import_module` takes the path at run time: in the source tree the command line is the package ``cli``, and only the
# installed package contains it as ``lzsampler.cli``.
import_module("lzsampler.cli.main").main()
