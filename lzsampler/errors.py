"""The exceptions of lzsampler. A bad argument raises ValueError or TypeError; these are for everything else."""


class LzsError(RuntimeError):
    """The library could not do what was asked: no token is allowed, a file is damaged, llama.cpp failed."""


class MissingExtra(LzsError, ModuleNotFoundError):  # noqa: N818 (it says what is missing)
    """A package that an extra brings is not installed, or does not load; the message says what to install.

    It is an ImportError, so that ``try: import lzsampler.hf`` and `pytest.importorskip` work as for any module.
    """


def missing(what: str, *packages: str) -> MissingExtra:
    """Return the error that says ``what`` needs a package that is not installed, and how pip installs it.

    ``packages``: what pip is given. They are named themselves and not the extra of lzsampler that has them: pip finds
    them whether lzsampler came from a package index or from a checkout.
    """
    return MissingExtra(f"{what}: pip install {' '.join(packages)}")


class ArgumentTypeError(TypeError, ValueError):
    """An argument has the wrong type. It is a ValueError too, so that one `except` takes any bad argument."""
