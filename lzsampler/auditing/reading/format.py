"""The interface of a format, which yields the model's messages in a row.

A row is one JSON value: a line of JSONL, an element of a JSON array, any other JSON file as a whole, or a row of a
Parquet file. A format tells whether a row belongs to the format, and yields the model's messages in the row. A format
may assume that a row is well formed, since an exception makes the row a `BadRecord`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_NO_GROUPS: Mapping[str, str] = {}


ONE_CHAT = "chat"  # `Message.conversation` in a file that has only one conversation


class Message(NamedTuple):
    """One message that a model wrote, as a format yields it.

    ``answer`` and ``reasoning``: the texts, or None. If ``reasoning`` is None, ``answer`` may still contain reasoning
    between `<think>` and `</think>`. ``id``: the id of the row, or None. ``number``: if the row is a whole file, the
    number that replaces the row's number. ``conversation``: a name that dependent messages of a file share. If it is
    None, messages with the same id are dependent. ``counterpart``: the prompt and seed of a text of `lzs eval`, which
    are the same under all settings; None for other messages.

    ``is_turn``: whether the message is a turn of a conversation, and not one of several answers to a prompt. ``calls``:
    the object that contains the message's tool calls; None without calls. A message that only calls tools has neither
    answer nor reasoning.
    """

    answer: str | None
    reasoning: str | None = None
    id: str | None = None
    groups: Mapping[str, str] = _NO_GROUPS
    number: int | None = None
    conversation: str | None = None
    counterpart: str | None = None
    is_turn: bool = False
    calls: Any = None


@dataclass(frozen=True)
class Source:
    """The file that rows come from. ``head``: the groups that the file's first row gives to all rows (`Format.head`).

    ``by``: further keys of a row to return as groups. ``packed``: whether the file is compressed or inside a zip. Its
    rows are then not lines of the file on the disk. ``state``: data that the format keeps until the end of the file, or
    of a stream in the file. If the format has ``finish``, ``state["number"]`` is the number of the current row.
    ``turns``: whether tool calls are needed. ``mixed``: whether rows of other formats are read, too.
    """

    file: str
    head: Mapping[str, str]
    by: tuple[str, ...]
    packed: bool = False
    state: dict[Any, Any] = field(default_factory=dict)
    turns: bool = False
    mixed: bool = False


def _no_head(file: str, row: Any) -> dict[str, str]:
    return {}


@dataclass(frozen=True)
class Format:
    """One format. ``name``: the name for `--format`. ``help``: a description in one line.

    ``matches``: tells from the keys of a row whether the row is in this format. ``messages``: yields the model's
    messages in a row. ``head``: returns, from the file's name and first row, groups that hold for all rows. It raises
    `NoTextError` if the file contains no generated text. ``columns``: the columns of a Parquet file that are read. A
    dot leads to a field of a struct.

    ``cut``: whether rows are independent of earlier rows. A file of such lines may be cut into shards. ``session``:
    whether messages with the same id anywhere in a file belong to one conversation. ``finish``: yields the messages
    that are unfinished at the end of the file, for a format that joins several rows to one message. In such a format,
    the number of a message is the number of the row in which the message begins.

    ``is_certain``: tells whether a row that matches is surely in this format, even inside an object of unknown form. If
    it is None, every row that matches is in this format. ``whole``: if true, values inside rows are never in this
    format, and an object is in this format only if the object is the whole file.
    """

    name: str
    help: str
    matches: Callable[[Any], bool]
    messages: Callable[[Any, Source], Iterable[Message]]
    head: Callable[[str, Any], dict[str, str]] = _no_head
    columns: tuple[str, ...] = ()
    cut: bool = True
    session: bool = False
    finish: Callable[[Source], Iterable[Message]] | None = None
    is_certain: Callable[[Any], bool] | None = None
    whole: bool = False


class NoTextError(ValueError):
    """A row or file has no text of a model. The message says what it contains instead."""
