"""Reads the bytes of a file, plain or compressed, line by line or as a whole, and parses JSON."""

import ast
import codecs
import contextlib
import functools
import gzip
import io
import json
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any

from ..._values import counted
from ...errors import missing


def _library_of_zstd() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        return None
    return zstd


ZSTD = _library_of_zstd()

MAX_LINE = 512 << 20  # maximum size of a line in bytes; longer lines are skipped to bound memory
MAX_DOCUMENT = 2 << 30  # maximum size, in bytes, of a file that can only be read as a whole
BUFFER = 1 << 20
_LONG = 16 << 20  # bytes; longer JSON texts are parsed with less memory and more time

Stream = Any  # an io.BufferedReader, which only some versions of typeshed make generic

# The exceptions that a damaged stream may raise.
STREAM_ERRORS = (OSError, EOFError, zlib.error, *(() if ZSTD is None else (ZSTD.ZstdError,)))

# The exceptions that a damaged zip may raise. RuntimeError means that the zip is encrypted.
ZIP_ERRORS = (
    zipfile.BadZipFile,
    RuntimeError,
    ValueError,
    KeyError,
    IndexError,
    struct.error,
    OverflowError,
    MemoryError,
    *STREAM_ERRORS,
)

_ZIP_ZSTD, _ZIP_HEADER, _ENCRYPTED = 93, 30, 1  # PKWARE's APPNOTE 6.3.10, sections 4.4.5, 4.3.7 and 4.4.4
_WINDOW_LOG = 31  # zstd's maximum, which files of `zstd --ultra --long=31` need
_BETWEEN = re.compile(r"[\s,]*")
_NESTED = re.compile(r"\s*[\[{]")  # the beginning of a list or object, in JSON or as Python prints it
_BETWEEN_ROWS = re.compile(r"\}\n\s*\{")  # numpy prints a line end, without a comma, between two objects
_LITERAL = 8 << 20  # maximum length of a text, in characters, for ast.literal_eval
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class JsonError(ValueError):
    """The bytes are not JSON. The message says why."""


def loads(data: bytes) -> Any:
    """Return the value of a JSON text, parsed by orjson if it is installed. `JsonError` if the text is not JSON.

    If orjson refuses a text, the standard library parses the text. Lone surrogates and invalid UTF-8 then become
    U+FFFD, and control characters in strings, NaN and Infinity are accepted.
    """
    fast = _orjson()
    # orjson copies its input. For a long text, the standard library needs less memory, since the bytes are freed before
    # it parses.
    if fast is not None and not (len(data) > _LONG and data.isascii()):
        try:
            return fast(data)
        except ValueError:
            pass  # The standard library parses the text, or says what is wrong.
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    del data
    try:
        value = json.loads(text, strict=False)
        return _without_surrogates(value) if "\\ud" in text or "\\uD" in text else value
    except json.JSONDecodeError as error:
        cut = " (it is cut off)" if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated") else ""
        raise JsonError(f"not JSON: {error.msg.removesuffix(' at')} at character {error.pos}{cut}") from None
    except RecursionError:
        raise JsonError("not read: it is nested too deeply") from None
    except ValueError:  # Python refuses numbers of thousands of digits.
        raise JsonError("not read: it has a number of thousands of digits") from None


def unpacked(text: Any) -> Any:
    """Parse a text that contains a list or object, as JSON or as Python prints it. Return any other value unchanged."""
    if not isinstance(text, str) or not _NESTED.match(text):
        return text
    try:
        return loads(text.encode("utf-8", "surrogatepass"))
    except JsonError:
        pass
    if len(text) > _LITERAL:
        return text
    try:
        return ast.literal_eval(_BETWEEN_ROWS.sub("},{", text).strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return text


def elements(data: bytes) -> tuple[list[Any], str]:
    """Return the elements of a JSON array up to the first damage, and a description of the damage ("" without damage).

    A value that is not an array is returned as the only element. A text of several values in sequence is read like an
    array. `JsonError` if a text that is not an array is damaged in its first two values.
    """
    try:
        value = loads(data)
        return value if isinstance(value, list) else [value], ""
    except JsonError as error:
        text = data.decode("utf-8", "replace").lstrip()
        found: list[Any] = []
        decoder, at = json.JSONDecoder(strict=False), int(text.startswith("["))
        with contextlib.suppress(ValueError, RecursionError):
            while at < len(text):
                at = _BETWEEN.match(text, at).end()  # type: ignore[union-attr] # The pattern matches everywhere.
                value, at = decoder.raw_decode(text, at)
                found.append(_without_surrogates(value))
        if not text.startswith("["):  # The text may be several values in sequence.
            if len(found) < 2:
                raise
            said = counted(len(found), "value before it was", "values before it were")
            return found, "" if at >= len(text.rstrip()) else f"{error}; the {said} read"
        return found, f"{error}; the {counted(len(found), 'element before it was', 'elements before it were')} read"


@functools.cache
def _orjson() -> Callable[[bytes], Any] | None:
    try:
        import orjson
    except ImportError:
        return None
    decoder: Callable[[bytes], Any] = orjson.loads
    return decoder


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return _SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_without_surrogates(inside) for inside in value]
    if isinstance(value, dict):
        return {key: _without_surrogates(inside) for key, inside in value.items()}
    return value


def compression(data: bytes) -> str:
    """Return "gz", "zst", "utf-16" or "", from the first bytes of a file."""
    if data[:2] == b"\x1f\x8b":
        return "gz"
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "utf-16"
    skippable = data[1:4] == b"\x2a\x4d\x18" and data[:1] in b"PQRSTUVWXYZ[\\]^_"  # RFC 8878, section 3.1.2
    return "zst" if skippable or data[:4] == b"\x28\xb5\x2f\xfd" else ""


@contextlib.contextmanager
def opened(path: str, packed: str) -> Iterator[Stream]:
    """Open a file and unpack it. ``packed``: the result of `compression`. MissingExtra if a library is missing."""
    with open(path, "rb", BUFFER) as file:
        if not packed:
            yield file
        else:
            unpack = {"gz": _gzip, "zst": _zstd, "utf-16": _Recoded}[packed]
            with unpack(file) as unpacked, buffered(unpacked) as stream:
                yield stream


@contextlib.contextmanager
def member(archive: zipfile.ZipFile, name: str) -> Iterator[Stream]:
    """Open a file of a zip. Raises `ZIP_ERRORS`.

    In logs of inspect-ai, the files are packed by zstd in several frames. Python's zipfile supports zstd only since
    3.14, and reads only the first frame.
    """
    info = archive.getinfo(name)
    if info.compress_type != _ZIP_ZSTD:
        with archive.open(info) as unpacked, buffered(unpacked) as stream:
            yield stream
    elif info.flag_bits & _ENCRYPTED:
        raise RuntimeError(f"File {name!r} is encrypted")
    else:
        with open(str(archive.filename), "rb") as file:
            file.seek(info.header_offset)
            header = file.read(_ZIP_HEADER)
            if len(header) < _ZIP_HEADER or not header.startswith(b"PK\x03\x04"):
                raise zipfile.BadZipFile(f"Bad magic number for file header of {name!r}")
            file.seek(sum(struct.unpack("<HH", header[-4:])), io.SEEK_CUR)  # skips the name and the extra field
            unpacked = _zstd(_Part(file, info.compress_size))
            with unpacked, io.BufferedReader(_Checked(unpacked, info), BUFFER) as stream:
                yield stream


def buffered(stream: Any) -> Stream:
    """Return a stream of gzip or zipfile with a buffer, which makes `readline` fast."""
    return io.BufferedReader(_Piecewise(stream), BUFFER)


class _Piecewise(io.RawIOBase):
    """A stream that returns all bytes before damage, and only then raises. A large read of gzip would lose these bytes.

    If damage cuts off a line, the stream adds a line end. Otherwise `readline` would raise and lose the line.
    """

    def __init__(self, stream: Any) -> None:
        self._stream, self._ends_line = stream, True
        self._damage: Exception | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            piece = self._next(len(buffer))
        except Exception as error:
            self._damage = error  # The error is kept, since further reads may report the end of the stream.
            if self._ends_line:
                raise
            piece = b"\n"
        if piece:
            self._ends_line = piece.endswith(b"\n")
        buffer[: len(piece)] = piece
        return len(piece)

    def _next(self, n: int) -> bytes:
        if self._damage is not None:
            raise self._damage
        return bytes(self._stream.read1(n))


class _Recoded(io.RawIOBase):
    """Converts UTF-16, as written by `>` in Windows PowerShell 5, to UTF-8."""

    def __init__(self, file: Any) -> None:
        self._file, self._decoder = file, codecs.getincrementaldecoder("utf-16")("replace")

    def readable(self) -> bool:
        return True

    def read1(self, n: int) -> bytes:
        while data := self._file.read(max(2, n // 3)):
            if text := self._decoder.decode(data):
                return str(text).encode("utf-8", "replace")
        return str(self._decoder.decode(b"", True)).encode("utf-8", "replace")


def _gzip(file: Any) -> Any:
    return gzip.GzipFile(fileobj=file)


def _zstd(file: Any) -> Any:
    """Return the unpacked bytes of zstd frames as a stream. MissingExtra if backports.zstd is missing."""
    if ZSTD is None:
        raise missing("files packed by zstd need backports.zstd", "backports.zstd")
    return ZSTD.ZstdFile(file, options={ZSTD.DecompressionParameter.window_log_max: _WINDOW_LOG})


class _Part:
    """A stream of the next ``size`` bytes of a file."""

    def __init__(self, file: IO[bytes], size: int) -> None:
        self._file, self._left = file, size

    def read(self, n: int) -> bytes:
        piece = self._file.read(min(n, self._left))
        self._left -= len(piece)
        return piece


class _Checked(_Piecewise):
    """A stream of an unpacked file of a zip. At the end, the file's checksum is checked."""

    def __init__(self, stream: Any, info: zipfile.ZipInfo) -> None:
        super().__init__(stream)
        self._info, self._crc = info, 0

    def _next(self, n: int) -> bytes:
        piece = super()._next(n)
        self._crc = zlib.crc32(piece, self._crc)
        if not piece and self._crc != self._info.CRC:
            raise zipfile.BadZipFile(f"Bad CRC-32 for file {self._info.filename!r}")
        return piece


def lines(stream: Stream, size: int | None = None) -> Iterator[bytes | None]:
    """Yield the lines of the next ``size`` bytes, or of all bytes if ``size`` is None, with their line ends.

    For a line longer than `MAX_LINE`, None is yielded.
    """
    while size is None or size > 0:
        line: bytes | None = stream.readline(MAX_LINE)
        if not line:
            return
        n = len(line)
        if n == MAX_LINE and not line.endswith(b"\n"):
            line = None
            while more := stream.readline(BUFFER):
                n += len(more)
                if more.endswith(b"\n"):
                    break
        if size is not None:
            size -= n
        held = [line]
        del line  # The line may have hundreds of megabytes, so only the caller may keep it.
        yield held.pop()


def whole(stream: Stream) -> tuple[bytes, str]:
    """Return the readable bytes of a stream, and the reason why the stream ended early ("" if it did not)."""
    pieces: list[bytes] = []
    n = 0
    try:
        while piece := stream.read1(BUFFER):
            pieces.append(piece)
            n += len(piece)
            if n > MAX_DOCUMENT:
                return b"".join(pieces), f"it is longer than {MAX_DOCUMENT >> 30} GiB: save it as JSONL"
    except STREAM_ERRORS as error:
        if pieces[-1:] == [b"\n"]:  # `_Piecewise` has added this line end.
            pieces.pop()
        return b"".join(pieces), stream_reason(error)
    return b"".join(pieces), ""


def stream_reason(error: BaseException) -> str:
    """Return an error message for an exception of `STREAM_ERRORS`."""
    if isinstance(error, EOFError):
        return "the compressed stream is cut off here; what came before it was read"
    if isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
        return f"it cannot be read: {error.strerror or error}"
    return f"the compressed stream is damaged here: {error}; what came before it was read"
