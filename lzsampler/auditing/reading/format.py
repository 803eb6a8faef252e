"""The interface between a format and the machinery that reads files: rows in, messages out.

A row is one JSON value: a line of JSONL, an element of a JSON array, the whole of any other JSON file, or a row of a
Parquet file. A format says whether a row is in this format, and which messages of the model are in it. It may take a
row apart as if it were well formed: an exception makes it a `BadRecord`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

_NO_GROUPS: Mapping[str, str] = {}


ONE_CHAT = "chat"  # the conversation of all messages of a file that holds one


class Message(NamedTuple):
    """One message that a model wrote, as a format finds it; None stands for a text that is not there.

    If ``reasoning`` is None, it may still be inside ``answer``, between `<think>` and `</think>`. ``id`` is None if the
    row has none. ``number`` replaces the number of the row if the row is a whole file. ``conversation``: what messages
    that are not independent have in common within a file; None where that is the id or, without one, the number.
    ``counterpart``: of a text of an evaluation, what answers to the same prompt with the same seed have in common under
    all settings; None of others.
    ``is_turn``: it is one of the turns of a conversation, and not one of several answers. ``calls``: the object that
    has its calls of tools, None if it has none; a message that only calls tools has neither answer nor reasoning.
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
    """The file that rows come from. ``head``: what its first row says of all (`Format.head`).

    ``by``: keys of a row that are wanted as groups, too. ``packed``: the file is compressed or inside a zip, so that no
    line of it is a row. ``state``: the format's own, kept until the end of the file, or of the stream in a file.
    ``turns``: whether calls of tools are wanted, too. ``mixed``: whether rows of other formats are read, too.
    A format with ``finish`` finds the number of the row that is read now under "number" of the state.
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

    ``matches``: whether a row is in this format, judged by its keys. ``messages``: what the model wrote in a row.
    ``head``: what every shard has to know from the file's name and first row; it raises `NoTextError` if nothing in the
    file was generated. ``columns``: the columns of a Parquet file that are read, with dots for fields of structs.
    ``cut``: whether rows do not depend on those before them, so that a file of lines may be cut into shards.
    ``session``: whether messages with the same id anywhere in a file belong to one conversation.
    ``finish``: for a format that joins rows: what is left of them at the end of the file. Its messages have numbers:
    those of the rows in which they begin. ``is_certain``: of a row that matches, whether it would even inside another
    object, where there may be anything; None if it always would. ``whole``: it never matches inside another object, and
    an object only if it is all of its file.
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
    """A model wrote nothing in this row or file; the message says what it holds instead."""
