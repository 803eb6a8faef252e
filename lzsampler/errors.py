"""The exceptions of lzsampler: `ArgumentError` for a bad argument, `LzsError` for everything else.

A plain ValueError or TypeError from lzsampler is a bug in lzsampler.
"""


class LzsError(RuntimeError):
    """lzsampler could not do what the caller asked, for example because no token is allowed, a file is damaged or
    llama.cpp failed.
    """


class MissingExtra(LzsError, ModuleNotFoundError):  # noqa: N818 (the name says what is missing)
    """An optional package is missing or does not load. The message says what to install.

    The error is an ImportError, as `pytest.importorskip` and ``try: import`` expect.
    """


def missing(what: str, *packages: str) -> MissingExtra:
    """Return the error whose message is ``what``, followed by the pip command that installs ``packages``.

    ``packages``: the arguments of pip. Package names are used instead of an extra of lzsampler, because they also work
    if lzsampler is installed from a checkout.
    """
    return MissingExtra(f"{what}: pip install {' '.join(packages)}")


class ArgumentError(ValueError):
    """An argument has an unsupported value; the message names the argument and the values that it can have."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has the wrong type. The error is a ValueError too: one `except` catches any bad argument."""
