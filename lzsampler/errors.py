"""The exceptions of lzsampler. Bad arguments raise ValueError or TypeError; these are for the rest."""


class LzsError(RuntimeError):
    """The library could not do what was asked: no token allowed, a damaged file, llama.cpp failed."""


class MissingExtra(LzsError, ImportError):  # noqa: N818 (it says what is missing)
    """A package that an extra brings is not installed, or does not load; the message says what to install."""
