"""The interface between a format and the code that reads files: rows in, messages out.

A row is one JSON value: a line of JSONL, an element of a JSON array, any other JSON file as a whole, or a row of a
Parquet file. A format tells whether a row belongs to it, and yields the model's messages in the row. It may assume that
a row is well formed: an exception makes the row a `BadRecord`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_NO_GROUPS: Mapping[str, str] = {}


ONE_CHAT = "chat"  # the conversation of all messages in a file with only one conversation


class Message(NamedTuple):
    """One message that a model wrote, as a format yields it. None stands for a missing text.

    If ``reasoning`` is None, it may still be inside ``answer``, between `<think>` and `</think>`. ``id`` is None if the
    row has no id. If the row is a whole file, ``number`` replaces the number of the row. ``conversation``: a name that
    dependent messages of a file share. If it is None, the id is the name, or without an id the number. ``counterpart``:
    a name of the prompt and seed of a text of an evaluation, the same under all settings; None for other messages.

    ``is_turn``: whether the message is a turn of a conversation, and not one of several answers. ``calls``: the object
    that contains the message's tool calls; None without calls. A message that only calls tools has neither answer nor
    reasoning.
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
    """The file that rows come from. ``head``: what the file's first row says about all rows (`Format.head`).

    ``by``: further keys of a row to return as groups. ``packed``: whether the file is compressed or inside a zip. The
    rows of such a file are not lines of the file. ``state``: data of the format, kept until the end of the file, or of
    the stream in a file. If the format has ``finish``, ``state["number"]`` is the number of the current row. ``turns``:
    whether tool calls are needed. ``mixed``: whether rows of other formats are read, too.
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
    """One format. ``name``: for `--format`. ``help``: one line.

    ``matches``: whether a row is in this format, by its keys. ``messages``: yields the model's messages in a row.
    ``head``: returns what every shard must know, from the file's name and first row; it raises `NoTextError` if the
    file contains no generated text. ``columns``: the columns to read of a Parquet file, with dots for fields of
    structs.

    ``cut``: whether rows are independent of earlier rows, so that a file of lines may be cut into shards. ``session``:
    whether messages with the same id anywhere in a file belong to one conversation. ``finish``: for a format that joins
    rows, yields what is left at the end of the file. Messages of such a format have the numbers of the rows in which
    they begin.

    ``is_certain``: whether a row that matches would also match inside another object, which may contain anything; None
    means always. ``whole``: whether the format never matches inside another object, and matches an object only if it is
    the whole file.
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
    """A row or file has no text of a model; the message says what it contains instead."""
