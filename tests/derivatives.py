"""The oracle of grammars: Brzozowski derivatives of what Python's own parser makes of a pattern, slow and readable.

A pattern is a nested tuple: () is the empty text, None is nothing at all, ("set", ranges) one code point of ascending
ranges, ("cat", a, b), ("or", parts), ("many", a, low, high). The constructors below keep them small. `Twin` reads
bytes: its state is an expression and the bytes of a character that is not complete.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as op  # type: ignore[attr-defined]
    from re import _parser  # type: ignore[attr-defined]
else:
    import sre_constants as op
    import sre_parse as _parser

Expression = Any
Ranges = tuple[tuple[int, int], ...]
MAX, SURROGATES = sys.maxunicode, (0xD800, 0xDFFF)
_CATEGORIES = {
    op.CATEGORY_DIGIT: ((48, 57),),
    op.CATEGORY_SPACE: ((9, 13), (32, 32)),
    op.CATEGORY_WORD: ((48, 57), (65, 90), (95, 95), (97, 122)),
}
_NEGATED = {
    op.CATEGORY_NOT_DIGIT: op.CATEGORY_DIGIT,
    op.CATEGORY_NOT_SPACE: op.CATEGORY_SPACE,
    op.CATEGORY_NOT_WORD: op.CATEGORY_WORD,
}


def _without_surrogates(ranges: Sequence[tuple[int, int]]) -> Ranges:
    parts = [part for a, b in ranges for part in ((a, min(b, SURROGATES[0] - 1)), (max(a, SURROGATES[1] + 1), b))]
    return tuple(sorted({(a, b) for a, b in parts if a <= b}))


def _complement(ranges: Ranges) -> Ranges:
    made, next_ = [], 0
    for a, b in sorted(ranges):
        if a > next_:
            made.append((next_, a - 1))
        next_ = max(next_, b + 1)
    return _without_surrogates([*made, (next_, MAX)] if next_ <= MAX else made)


def cat(a: Expression, b: Expression) -> Expression:
    if a is None or b is None:
        return None
    if a and a[0] == "cat":  # to the right, so that equal texts have equal expressions
        return cat(a[1], cat(a[2], b))
    return b if a == () else a if b == () else ("cat", a, b)


def either(parts: Sequence[Expression]) -> Expression:
    flat: set[Expression] = set()
    for part in parts:
        if part is not None:
            flat |= part[1] if part and part[0] == "or" else {part}
    return None if not flat else next(iter(flat)) if len(flat) == 1 else ("or", frozenset(flat))


def many(a: Expression, low: int, high: int | None) -> Expression:
    if a is None:
        return () if low == 0 else None
    return () if a == () or high == 0 else a if (low, high) == (1, 1) else ("many", a, low, high)


def parsed(pattern: str) -> Expression:
    """Return the expression of a pattern of Python's re, with ASCII classes."""
    tree = _parser.parse(pattern, re.ASCII)
    return _sequence(tree, bool(tree.state.flags & re.DOTALL), bool(tree.state.flags & re.IGNORECASE))


def _sequence(items: Any, dot_all: bool, fold: bool) -> Expression:
    made: Expression = ()
    for item in reversed(list(items)):
        made = cat(_item(item, dot_all, fold), made)
    return made


def _item(item: Any, dot_all: bool, fold: bool) -> Expression:
    kind, value = item
    if kind is op.LITERAL:
        return _set([(value, value)], fold)
    if kind is op.NOT_LITERAL:
        return ("set", _complement(_set([(value, value)], fold)[1]))
    if kind is op.ANY:
        return ("set", _complement(() if dot_all else ((10, 10),)))
    if kind is op.IN:
        negated = value[0][0] is op.NEGATE
        ranges = [part for one in value[negated:] for part in _ranges(*one)]
        made = _set(ranges, fold)
        return ("set", _complement(made[1])) if negated else made
    if kind is op.BRANCH:
        return either([_sequence(branch, dot_all, fold) for branch in value[1]])
    if kind is op.SUBPATTERN:
        _, on, off, inner = value
        flags = [(now or bool(on & flag)) and not off & flag for flag, now in ((re.S, dot_all), (re.I, fold))]
        return _sequence(inner, *flags)
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT):
        low, high, inner = value
        return many(_sequence(inner, dot_all, fold), low, None if high is op.MAXREPEAT else high)
    if kind is op.AT:
        return ()
    raise NotImplementedError(kind)


def _ranges(kind: Any, value: Any) -> Sequence[tuple[int, int]]:
    if kind is op.LITERAL:
        return [(value, value)]
    if kind is op.RANGE:
        return [value]
    return _complement(_CATEGORIES[_NEGATED[value]]) if value in _NEGATED else _CATEGORIES[value]


def _set(ranges: Sequence[tuple[int, int]], fold: bool) -> Expression:
    codes = list(ranges)
    if fold:
        codes += [(c ^ 32, c ^ 32) for a, b in ranges for c in range(a, min(b, 127) + 1) if chr(c).isalpha()]
    return ("set", _without_surrogates(codes))


@cache
def nullable(e: Expression) -> bool:
    """Return whether the empty text matches."""
    if e is None or e == ():
        return e is not None
    if e[0] == "cat":
        return nullable(e[1]) and nullable(e[2])
    if e[0] == "or":
        return any(map(nullable, e[1]))
    return e[0] == "many" and (e[2] == 0 or nullable(e[1]))


@cache
def derivative(e: Expression, code: int) -> Expression:
    """Return what may follow a code point."""
    if e is None or e == ():
        return None
    if e[0] == "set":
        return () if any(a <= code <= b for a, b in e[1]) else None
    if e[0] == "or":
        return either([derivative(part, code) for part in e[1]])
    if e[0] == "cat":
        first = cat(derivative(e[1], code), e[2])
        return either([first, derivative(e[2], code)]) if nullable(e[1]) else first
    _, a, low, high = e
    rest = many(a, max(0, low - 1), None if high is None else high - 1)
    return cat(derivative(a, code), rest)


@cache
def firsts(e: Expression) -> frozenset[tuple[int, int]]:
    """Return ranges of the code points that may come first."""
    if e is None or e == ():
        return frozenset()
    if e[0] == "set":
        return frozenset(e[1])
    if e[0] == "or":
        return frozenset().union(*map(firsts, e[1]))
    if e[0] == "cat":
        return firsts(e[1]) | firsts(e[2]) if nullable(e[1]) else firsts(e[1])
    return firsts(e[1])


State = tuple[Expression, bytes]


@cache
def _codes_of(begin: bytes) -> tuple[int, int] | None:
    """Return the first and last code point whose bytes begin so, or None."""
    first, last = None, None
    length = 1 if begin[0] < 0x80 else 2 if begin[0] < 0xE0 else 3 if begin[0] < 0xF0 else 4
    for filling in (b"\x80", b"\x90", b"\xa0", b"\xbf", b"\x9f", b"\x8f"):  # what second bytes are limited by
        for rest in (b"\x80", b"\xbf"):
            text = (begin + (filling + rest * 2)[: max(0, length - len(begin))])[:length]
            try:
                code = ord(text.decode("utf-8"))
            except (UnicodeDecodeError, TypeError):
                continue
            first = code if first is None else min(first, code)
            last = code if last is None else max(last, code)
    return None if first is None or last is None else (first, last)


class Twin:
    """Reads a text byte by byte."""

    def __init__(self, pattern: str) -> None:
        self.start: State = (parsed(pattern), b"")
        self.step = cache(self._step)

    def _step(self, state: State, byte: int) -> State | None:
        """Return the state behind a byte; None where no text that matches goes on so."""
        e, begin = state
        begin += bytes([byte])
        codes = _codes_of(begin)
        if codes is None or not any(a <= codes[1] and b >= codes[0] for a, b in firsts(e)):
            return None
        if codes[0] != codes[1] or len(begin) < len(chr(codes[0]).encode("utf-8")):
            return e, begin
        after = derivative(e, codes[0])
        return None if after is None else (after, b"")

    def read(self, data: bytes, state: State | None = None) -> State | None:
        """Return the state behind some bytes, or None."""
        state = self.start if state is None else state
        for byte in data:
            state = self.step(state, byte)
            if state is None:
                return None
        return state

    def accepts(self, state: State) -> bool:
        """Return whether the text may end here."""
        return not state[1] and nullable(state[0])

    def allowed(self, pieces: Sequence[bytes], end: Sequence[int], special: Sequence[int], state: State) -> set[int]:
        """Return the tokens that may follow: each is read by itself, and must lead to a state that can be completed."""
        able = _Completable(self, [piece for i, piece in enumerate(pieces) if piece and i not in {*end, *special}])
        made = set(end) if self.accepts(state) else set()
        for token, piece in enumerate(pieces):
            if piece and token not in end and token not in special:
                after = self.read(piece, state)
                if after is not None and able(after):
                    made.add(token)
        return made


class _Completable:
    """Whether tokens can complete a text: nothing to ask where each byte is a token, else a search."""

    def __init__(self, twin: Twin, pieces: Sequence[bytes]) -> None:
        self.twin, self.pieces = twin, sorted(set(pieces), key=len)
        self.all_bytes = {piece for piece in pieces if len(piece) == 1} == {bytes([i]) for i in range(256)}
        self.known: dict[State, bool] = {}

    def __call__(self, state: State) -> bool:
        if self.all_bytes:
            return True
        if state not in self.known:
            reached, todo = {state}, [state]
            found = False
            while todo and not found:
                at = todo.pop()
                found = self.twin.accepts(at) or self.known.get(at, False)
                for after in self._after(at):
                    if after not in reached:
                        reached.add(after)
                        todo.append(after)
            self.known[state] = found
        return self.known[state]

    def _after(self, state: State) -> Iterator[State]:
        for piece in self.pieces:
            after = self.twin.read(piece, state)
            if after is not None:
                yield after
