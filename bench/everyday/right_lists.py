"""Right texts that are lists of a few words, on which a penalty for frequent words costs the most.

    python bench/everyday/right_lists.py FOLDER
    lzs tax -m smollm2 --grid bench/everyday/right_lists.toml --max-tokens 1000 FOLDER

Two texts of each kind are written, each kind into a folder of its own, from a fixed seed. The words are drawn, so that
the text cannot be foretold and is no loop.
"""

import argparse
import random
from collections.abc import Iterator
from pathlib import Path

_SEED = 20131
_LIBRARIES = (
    "zlib curl openssl pcre sqlite ssh lua jpeg png tiff xml yaml json mbedtls gnutls ncurses readline bzip2 lzma zstd "
    "brotli nghttp2 cares idn psl krb5 ldap rtmp gsasl boost eigen gtest fmt spdlog absl protobuf grpc thrift avro "
    "flatbuffers capnp msgpack cbor snappy lz4"
)


def main() -> None:
    """Write the texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the texts are written")
    folder: Path = parser.parse_args().folder
    for kind, number, text in texts():
        path = folder / kind / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


def texts() -> Iterator[tuple[str, int, str]]:
    """Return the texts: the name of the kind, the number of the text among those of its kind, and the text."""
    rng = random.Random(_SEED)
    for number in range(2):
        names = _LIBRARIES.split()
        rng.shuffle(names)
        yield "flags", number, "".join(f"{name}: {_drawn(rng, 'true false', 5)}\n" for name in names)
        yield "array", number, "[\n" + ",\n".join(f"  [{_drawn(rng, 'true false', 8)}]" for _ in range(30)) + "\n]\n"
        yield "table", number, _table(rng, names)
        yield "questions", number, " ".join(f"Does {name} build here? {_drawn(rng, 'Yes No', 1)}." for name in names)
        yield "answers", number, "".join(f"{n}. {_drawn(rng, 'True False', 1)}\n" for n in range(1, 61))
        yield "moves", number, _drawn(rng, "left right up down", 200) + "\n"
        yield "bases", number, _drawn(rng, "A C G T", 200, " ") + "\n"
        yield "words", number, _drawn(rng, "yes no", 200, " ") + "\n"


def _drawn(rng: random.Random, words: str, n: int, between: str = ", ") -> str:
    return between.join(rng.choices(words.split(), k=n))


def _table(rng: random.Random, names: list[str]) -> str:
    head = "| name | Linux | macOS | Windows | BSD | WASM |\n|---|---|---|---|---|---|\n"
    return head + "".join(f"| {name} | {_drawn(rng, 'yes no', 5, ' | ')} |\n" for name in names)


if __name__ == "__main__":
    main()
