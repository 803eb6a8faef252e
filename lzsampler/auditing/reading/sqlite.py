"""Reads SQLite databases in which programs store their chats.

The databases of llm (`logs.db`), OpenCode (`opencode.db`) and Open WebUI (`webui.db`) are known. In the databases of
other programs, tables with a column of answers are read. A database is opened only for reading, and its program may be
running.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from ..formats import ROW_FORMATS
from .cells import value_of
from .decode import MAX_LINE, unpacked
from .sniff import ROWS, UnknownFormatError


class Query(NamedTuple):
    """A query for the rows of a program's database. ``tables``: (table, column) pairs that must all exist."""

    program: str
    tables: tuple[tuple[str, str], ...]
    sql: str
    parsed: tuple[str, ...] = ()  # columns that contain JSON


# Each query returns rows in one of `ROW_FORMATS`. The first query whose tables exist decides the program. All queries
# of this program whose tables exist are run.
_QUERIES = (
    Query(
        "llm",
        (("turns", "tip_message_hash"), ("parts", "message_hash")),
        """select t.id as id, t.model as model, t.thread_id as thread, 'assistant' as role,
                  (select json_group_array(json_object('type', type, 'text', text)) from
                     (select type, text from parts where message_hash = t.tip_message_hash order by position)
                  ) as content
           from turns t order by t.datetime_utc, t.id""",
        ("content",),
    ),
    Query(
        "llm",
        (("responses", "prompt"), ("responses", "response")),
        "select id, model, conversation_id, response{reasoning} from responses {new} order by datetime_utc, id",
    ),
    Query(
        "opencode",
        (("message", "session_id"), ("part", "message_id"), ("message", "data")),
        """select m.session_id as id, m.data as info,
                  (select json_group_array(json(data)) from
                     (select data from part where message_id = m.id order by id)) as parts
           from message m order by m.time_created, m.id""",
        ("info", "parts"),
    ),
    Query(
        "open-webui",
        (("chat", "chat"), ("chat", "user_id")),
        "select id, chat from chat order by created_at, id",
        ("chat",),
    ),
)  # fmt: skip


def rows(path: str) -> Iterator[Any]:
    """Yield the rows of a database as objects.

    If the database cannot be read, OSError says why. `UnknownFormatError` if no table contains answers.
    """
    try:
        with closing(_opened(path)) as database:
            yield from _rows(database)
    except sqlite3.Error as error:
        locked = ": end the program that writes to it, or audit a copy" if "locked" in str(error) else ""
        raise OSError(f"{error}{locked}") from None


def _opened(path: str) -> sqlite3.Connection:
    uri = Path(path).absolute().as_uri()
    database = sqlite3.connect(f"{uri}?mode=ro", uri=True)
    try:
        database.execute("select name from sqlite_master limit 1").fetchall()
    except sqlite3.Error as error:
        database.close()
        # Some databases can be read only with a second file. This file cannot be created on a read-only medium. Nobody
        # writes to such a medium, so locks can be ignored. But a log beside the database may contain rows.
        if not any(said in str(error) for said in ("unable to open", "readonly")):
            raise
        for log in (f"{path}-wal", f"{path}-journal"):
            if os.path.exists(log) and os.path.getsize(log):
                raise OSError(
                    f"part of it is in {os.path.basename(log)}, which cannot be read here: copy both files to a folder "
                    "that can be written to, and open the copy once with the program that made it"
                ) from None
        database = sqlite3.connect(f"{uri}?mode=ro&immutable=1", uri=True)
    database.execute("pragma trusted_schema = off")  # The file must not call functions with side effects.
    if hasattr(database, "setlimit"):  # since Python 3.11
        database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_LINE)
    database.row_factory = sqlite3.Row
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    return database


def _rows(database: sqlite3.Connection) -> Iterator[Any]:
    columns: dict[str, list[str]] = {}
    for (table,) in database.execute("select name from sqlite_master where type = 'table' order by name").fetchall():
        try:
            columns[table] = [row[1] for row in database.execute(f"pragma table_info({_quoted(table)})")]
        except sqlite3.Error:  # The table is virtual, and its module is missing.
            continue
    program = ""
    for query in _QUERIES:
        if program not in ("", query.program):
            continue
        if all(column in columns.get(table, ()) for table, column in query.tables):
            program = query.program
            more = ", reasoning" if "reasoning" in columns.get("responses", ()) else ""
            new = "where id not in (select id from turns)" if "turns" in columns else ""
            for row in database.execute(query.sql.replace("{reasoning}", more).replace("{new}", new)):
                yield _object(row, query)
    if program:
        return
    known = False
    for table in columns:
        first = database.execute(f"select * from {_quoted(table)} limit {ROWS}")
        if any(
            format.matches(sample) and (format.is_certain is None or format.is_certain(sample))
            for sample in map(_object, first)
            for format in ROW_FORMATS
        ):
            known = True
            for row in database.execute(f"select * from {_quoted(table)}"):
                yield _object(row)
    if not known:
        raise UnknownFormatError(f"the format is not known (its tables: {', '.join(list(columns)[:8]) or 'none'})")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _object(row: sqlite3.Row, query: Query | None = None) -> dict[str, Any]:
    """Return a row as an object, without values of bytes.

    If there is a query, JSON is parsed in the columns that the query names. Otherwise `value_of` parses JSON.
    """
    found: dict[str, Any] = {}
    for key in row.keys():  # noqa: SIM118 (it is not a mapping)
        value = row[key]
        if isinstance(value, bytes):
            continue
        if query is None:
            value = value_of(key, value)
        elif key in query.parsed:
            value = unpacked(value)
        found[key] = value
    return found
