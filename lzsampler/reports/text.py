"""Makes untrusted text safe to show, and formats numbers for readers."""

import re

from ..util.harmless import steers

_SPACE = re.compile(r"\s+")
_LINE_ENDS = frozenset("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")


def visible(text: str, longest: int = 300) -> str:
    """Return the first ``longest`` characters of a text as one line that cannot control a terminal or a browser.

    White space becomes one space, with a ⏎ if it contains a line end. Control characters and direction marks become
    U+FFFD. Joiners (U+200C, U+200D) and variation selectors stay, because they belong to the characters around them.
    """
    cut = text[: longest + 1]
    line = _SPACE.sub(lambda space: " ⏎ " if _LINE_ENDS & set(space[0]) else " ", cut[:longest]).strip(" ")
    shown = "".join("\ufffd" if steers(c) else c for c in line)
    return shown + "…" if len(cut) > longest else shown


def columns(text: str) -> int:
    """Return how many columns of a terminal a visible text takes: 2 a wide character, 0 a combining character."""
    from rich.cells import cell_len  # the same measure as in rich's tables

    return cell_len(text)


def fit(text: str, width: int) -> str:
    """Return a visible text cut to ``width`` columns (1 or more), with … at its end if it was cut."""
    return text if columns(text) <= width else _beginning(text, width - 1).rstrip() + "…"


def fit_ends(text: str, width: int) -> str:
    """Return a visible text cut to ``width`` columns (1 or more), with … in its middle if it was cut."""
    if columns(text) <= width:
        return text
    end = _beginning(text[::-1], width // 2)[::-1]
    return _beginning(text, width - 1 - columns(end)).rstrip() + "…" + end.lstrip()


def _beginning(text: str, width: int) -> str:
    """Return the beginning of a visible text in ``width`` columns; a cut wide character becomes a space."""
    from rich.cells import set_cell_size

    return set_cell_size(text, min(width, columns(text)))


def count(n: float) -> str:
    """Return a whole number for readers: 12,345, and from a million on 1.23 M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if n >= size:
            return f"{n / size:.3g} {letter}"
    return f"{n:,.0f}"


def percent(share: float) -> str:
    """Return a share, 0..1, in percent to three digits, never rounded to exactly 0 or 100: 3.40 %, 0.0381 %."""
    value = 100 * share
    if 0 < value < 0.001:
        return "<0.001 %"
    if 99.9 < value < 100:
        return ">99.9 %"
    return f"{value:.0f} %" if value in (0, 100) else f"{value:#.3g} %"


def between(low: float, high: float) -> str:
    """Return an interval of shares, 0..1, in percent: 8.75 to 31.9 %."""
    return f"{percent(low).removesuffix(' %')} to {percent(high)}"


def whole(share: float) -> str:
    """Return a share, 0..1, in whole percent: 38 %."""
    return f"{100 * share:.0f} %"
