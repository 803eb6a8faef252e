"""Comparisons: functions that say whether a text has the correct answer of a task.

A comparison is a function of (content, answer) to bool. ``content`` is a text without its reasoning.
"""

import importlib
import re
from collections import deque
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from ..errors import ArgumentError, LzsError

Compare = Callable[[str, str], bool]

_LONGEST = 400  # maximum number of characters of a number, and maximum decimal exponent; answers are smaller
_DECIMAL = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|\.\d+"
_OVER, _UNDER = rf"\{{\s*(?P<over>[-+−]?(?:{_DECIMAL}))\s*\}}", rf"\{{\s*(?P<under>{_DECIMAL})\s*\}}"
_FRACTION = rf"\\[dt]?frac\s*(?:{_OVER}\s*{_UNDER}|(?P<digits>\d\d))"
_NUMBER = re.compile(
    rf"(?:(?<!\w)(?P<sign>[-+−]))?\\?\$?(?:{_FRACTION}|(?P<left>{_DECIMAL})(?:\s?/\s?(?P<right>{_DECIMAL}))?)\s?(?:\\?%)?"
)
_FORMULA = ((r"\(", r"\)"), (r"\[", r"\]"), ("$", "$"))  # delimiters around a formula
_BRACE = re.compile(r"\\boxed\s*\{|\\[{}]|[{}]")
_BEFORE_LETTER = r"[\s:*_(\[\"'$\\]*"  # one character class, because two in a row would backtrack
_STATED = re.compile(r"(?i)\b(?:answer|total|sum|result)\b[\s*_]*(?:is|:|=)[\s:*_(\[\"'=]*")
_BETWEEN = r"(?:[\W_])+(?:\d+[.):]\s+)?"  # what may stand between two parts of a sequence
# The strongest pattern comes first: "the answer is B" counts before "option A", wherever they are.
_CHOICES = (
    re.compile(rf"(?i:answer)[\s*_]*(?i:is|:|=){_BEFORE_LETTER}(?:(?i:choice|option){_BEFORE_LETTER})?([A-Z])\b"),
    re.compile(rf"(?i:answer|choice|option)(?:[\s*_]*(?i:is|:))?{_BEFORE_LETTER}([A-Z])\b"),
    re.compile(r"(?<![A-Za-z'])([A-Z])(?![A-Za-z'])"),
)


def exact(content: str, answer: str) -> bool:
    """Return whether the text is the answer, apart from white space around it."""
    return content.strip() == answer.strip()


def contains(content: str, answer: str) -> bool:
    """Return whether the answer occurs in the text. Upper and lower case do not matter."""
    return answer.strip().casefold() in content.casefold()


def regex(content: str, answer: str) -> bool:
    """Return whether the answer, a pattern of Python's `re`, occurs in the text."""
    return re.search(answer, content) is not None


def number(content: str, answer: str) -> bool:
    r"""Return whether the text's last number is the answer.

    If the text has a ``\boxed{}``, its last number is the last number in the last box. If not, it is the last number
    after the last ``####``. Without ``####``, it is the last number of the whole text. Numbers are decimals or
    fractions (3/4, ``\frac{3}{4}``), and are compared by value: 1,200 is 1200.0, and 0.5 is 1/2. Dollar and percent
    signs do not matter.
    """
    found, wanted = _last_number(content), _whole_number(answer)
    return found is not None and found == wanted


def stated(content: str, answer: str) -> bool:
    r"""Return whether the number that the text states as its answer is correct. The text may go on after the answer.

    If the text has a ``\boxed{}`` or ``####``, the number is the one that `number` finds. If not, it is the first
    number after the last "answer is", "answer:", "total is" or the like. Without such words, it is the last number of
    the text. A text can be cut off within a number ("The answer is 42. The answer is 4"). So if the text ends with the
    number, and the number is only the beginning of the previous stated number, the previous number counts.
    """
    if last_boxed(content) is None and "####" not in content:
        plain = content.replace("{,}", ",")
        statements = deque((found for at in _STATED.finditer(plain) if (found := _NUMBER.match(plain, at.end()))), 2)
        if statements:
            last = statements[-1]
            before = statements[0][0].strip()
            cut = last.end() == len(plain) and last[0].strip() != before and before.startswith(last[0].strip())
            return _value(statements[0] if cut else last) == _whole_number(answer)
    return number(content, answer)


def sequence(content: str, answer: str) -> bool:
    """Return whether the text has the parts of the answer ("2, 4, 6") in their order, in upper or lower case.

    Between two parts there may only be white space, marks such as commas and hyphens, and the numbers of list items.
    The text before the first part and after the last part does not matter.
    """
    parts = [re.escape(part) for part in _parts(answer)]
    return re.search(rf"(?i)(?<!\w){_BETWEEN.join(parts)}(?!\w)", content) is not None


def several(content: str, answer: str) -> bool:
    """Return whether enough different words or phrases of a list are in the text ("2: red|green|blue" needs two).

    Words and phrases count in upper or lower case, as whole words, also with an s or es at the end.
    """
    wanted, names = _several(answer)
    longest_first = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
    found = re.finditer(rf"(?i)(?<!\w)({longest_first})(?:es|s)?(?!\w)", content)
    return len({match[1].casefold() for match in found}) >= wanted


def choice(content: str, answer: str) -> bool:
    r"""Return whether the letter that the text chooses is the answer.

    If the text has a ``\boxed{}``, the letter is in the last box. If not, it is the last letter after "answer is" or
    "answer:". Without such words, it is the last letter after "answer", "choice" or "option". Without these, it is the
    last capital letter that stands alone. Letters outside a box must be capitals.
    """
    boxed = last_boxed(content)
    if boxed is not None:
        letters = _CHOICES[-1].findall(boxed.upper())
    else:
        letters = next((found for pattern in _CHOICES if (found := pattern.findall(content))), [])
    return bool(letters) and letters[-1] == _letter(answer)


COMPARISONS: dict[str, Compare] = {
    "exact": exact,
    "number": number,
    "regex": regex,
    "choice": choice,
    "contains": contains,
    "stated": stated,
    "sequence": sequence,
    "several": several,
}


def comparison(name: str) -> Compare:
    """Return the comparison that ``name`` stands for.

    ``module:function`` names a function of (content, answer) to bool. ArgumentError for an unknown name, and for a
    function that cannot be imported. `score` guards the call.
    """
    if name in COMPARISONS:
        return COMPARISONS[name]
    module, colon, function = name.partition(":")
    if not colon:
        raise ArgumentError(f"compare must be one of {', '.join(COMPARISONS)} or module:function, got {name!r}")
    try:
        found: Compare = getattr(importlib.import_module(module), function)
    except Exception as error:  # the module is the user's, and may raise anything
        raise ArgumentError(f"compare={name!r} cannot be imported: {error}") from error
    return found


def check_answer(name: str, answer: str, *, allow_code: bool = False) -> None:
    """Raise ValueError, with the reason, if no text can be compared with this answer. Raises the errors of
    `comparison`.

    LzsError for ``module:function`` without ``allow_code``. It is raised before any import, because a file of tasks is
    data, not code.
    """
    if ":" in name and not allow_code:
        raise LzsError(
            f"compare={name!r} would run code; if you trust it, allow it with lzs eval --allow-code, or in Python "
            "allow_code=True"
        )
    comparison(name)
    if name in ("number", "stated") and _whole_number(answer) is None:
        raise ArgumentError(
            f'the answer {answer[:40]!r} is not a number: give a "compare" such as "exact" or "contains"'
        )
    if name in ("contains", "regex") and not answer:
        raise ArgumentError("the answer is empty, so every text would be right")
    if name == "choice" and _letter(answer) is None:
        raise ArgumentError(f"the answer {answer[:40]!r} is not a letter from A to Z")
    if name == "sequence" and not _parts(answer):
        raise ArgumentError(
            f"the answer {answer[:40]!r} has no parts: give them with commas between them, as in '2, 4, 6'"
        )
    if name == "several":
        _several(answer)
    if name == "regex":
        try:
            re.compile(answer)
        except (re.error, RecursionError, OverflowError) as error:
            raise ArgumentError(f"the answer {answer[:40]!r} is not a regular expression: {error}") from error


def last_boxed(text: str) -> str | None:
    r"""Return the content of the last ``\boxed{}`` that has a closing brace; None if the text has no such box."""
    start = end = -1
    opened: list[int] = []  # the start of the content of each open group; -1 if it is not a box
    for brace in _BRACE.finditer(text):
        if brace[0] == "}" and opened:
            begin = opened.pop()
            if begin > start:
                start, end = begin, brace.start()
        elif brace[0].endswith("{") and brace[0] != "\\{":
            opened.append(-1 if brace[0] == "{" else brace.end())
    return None if start < 0 else text[start:end]


def _parts(answer: str) -> list[str]:
    return [part.strip() for part in answer.split(",") if part.strip()]


def _several(answer: str) -> tuple[int, list[str]]:
    """Return the number and the words or phrases; ValueError for an answer of another form, or with too few words."""
    wanted, _, rest = answer.partition(":")
    names = [name.strip() for name in rest.split("|") if name.strip()]
    if not (re.fullmatch(r"\d{1,9}", wanted.strip()) and 1 <= int(wanted) <= len({name.casefold() for name in names})):
        raise ArgumentError(
            f"the answer {answer[:40]!r} must be a number, a colon and at least as many words with | between them, "
            "as in '2: red|green|blue'"
        )
    return int(wanted), names


def _letter(answer: str) -> str | None:
    letter = answer.strip().strip("()").upper()
    return letter if len(letter) == 1 and "A" <= letter <= "Z" else None


def _whole_number(answer: str) -> Fraction | None:
    """Return the number in an answer; None if the answer contains anything else."""
    boxed = last_boxed(answer)
    found = _NUMBER.fullmatch(_unmarked(answer if boxed is None else boxed).replace("{,}", ","))
    return None if found is None else _value(found)


def _unmarked(text: str) -> str:
    """Remove white space around a text, a full stop at its end, and the delimiters of a formula."""
    text = text.strip().removesuffix(".").rstrip()
    for begin, end in _FORMULA:
        if text.startswith(begin) and text.endswith(end) and len(text) >= len(begin) + len(end):
            text = text[len(begin) : -len(end)].strip()
    return text


def _last_number(text: str) -> Fraction | None:
    boxed = last_boxed(text)
    if boxed is not None:
        text = boxed
    elif "####" in text:
        text = text.rsplit("####", 1)[1]
    found = deque(_NUMBER.finditer(text.replace("{,}", ",")), maxlen=1)  # {,}: LaTeX's comma without a space
    return _value(found[0]) if found else None


def _value(found: re.Match[str]) -> Fraction | None:
    """Return the value of a match of `_NUMBER`; None if it divides by 0, or is longer than any answer."""
    if found["digits"]:  # \frac34
        over, under = found["digits"][0], found["digits"][1]
    else:
        over, under = found["over"] or found["left"], found["under"] or found["right"] or "1"
    above, below = _decimal(over), _decimal(under)
    if above is None or not below:
        return None
    value = above / below
    return -value if found["sign"] in ("-", "−") else value


def _decimal(text: str) -> Fraction | None:
    if len(text) > _LONGEST:
        return None
    try:
        value = Decimal(text.replace(",", "").replace("−", "-"))
    except InvalidOperation:
        return None
    return Fraction(value) if not value or abs(value.adjusted()) <= _LONGEST else None
