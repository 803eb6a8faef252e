"""The exceptions of lzsampler: `ArgumentError` for what is wrong with an argument, `LzsError` for all else.

A plain ValueError or TypeError out of lzsampler is a mistake of its own.
"""


class LzsError(RuntimeError):
    """The library could not do what was asked: no token is allowed, a file is damaged, llama.cpp failed."""


class MissingExtra(LzsError, ModuleNotFoundError):  # noqa: N818 (it says what is missing)
    """A package that an extra brings is not installed, or does not load; the message says what to install.

    It is an ImportError, so that `pytest.importorskip` and ``try: import`` work as for any module.
    """


def missing(what: str, *packages: str) -> MissingExtra:
    """Return the error that says ``what`` needs a package that is not installed, and how pip installs it.

    ``packages``: what pip is given. They are named themselves and not the extra of lzsampler that has them: pip finds
    them whether lzsampler came from a package index or from a checkout.
    """
    return MissingExtra(f"{what}: pip install {' '.join(packages)}")


class ArgumentError(ValueError):
    """An argument has a value that cannot be taken; the message names it and says what can."""


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument has the wrong type. It is a ValueError too, so that one `except` takes any bad argument."""
