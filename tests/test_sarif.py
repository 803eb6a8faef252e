"""Places in SARIF: where a result points into a file its loop is there, and where that is not certain it does not."""

import gzip
import json
from pathlib import Path
from typing import Any

from lzsampler import audit_files, save
from test_shards import zipped
from transcripts import jsonl, said

LOOP = "Wait, let me think. " * 30
LITERAL = "Some words.\n" + "-" * 40 + "\nMore words."  # LZR020, and no loop
ROUNDS = "".join(f"{a} and the same old story of {b}. " for a in "abcd" for b in "efgh")  # LZR010


def sarif_of(folder: Path) -> Any:
    path = folder.parent / "loops.sarif"
    with audit_files(".", workers=1) as made:
        save(made, path)
    return json.loads(path.read_bytes())


def test_places_are_true_or_not_there(tmp_path: Path, monkeypatch: Any) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    monkeypatch.chdir(folder)
    rows = [{"messages": [said("fine")]}, {"messages": [said("a"), said(LOOP)]}, {"messages": [said(LITERAL)]}]
    files = {
        "lines.jsonl": jsonl(rows[0], b"\n", b"{\n", *rows[1:], {"messages": [said(ROUNDS)]}),
        "bom.ndjson": b"\xef\xbb\xbf" + jsonl(*rows),
        "one.jsonl": jsonl({"generated_texts": ["a", "b", LOOP]}),
        "document.jsonl": json.dumps(rows, indent=1).encode(),
        "array.jsonl": json.dumps(rows).encode(),
        "lines.json": jsonl(*rows),
        "packed.jsonl.gz": gzip.compress(jsonl(*rows)),
        "several.zip": zipped({"a.jsonl": jsonl(*rows), "b.txt": LOOP.encode()}),
        "plain.txt": ("Ünicode 😀\r\nand\n" + LOOP + "\nthe end").encode(),
        "wide.txt": ("é\n" + LOOP).encode("utf-16"),
        "odd.txt": b"\xff\xfe\xff" + LOOP.encode(),
        "thought.md": ("<think>short</think>" + LOOP).encode(),
        "no-thought.md": ("<think>\n</think>" + LOOP).encode(),
        "literal.txt": LITERAL.encode(),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    places: dict[str, list[Any]] = {}
    for result in sarif_of(folder)["runs"][0]["results"]:
        place = result["locations"][0]["physicalLocation"]
        places.setdefault(place["artifactLocation"]["uri"], []).append((result, place.get("region")))
    assert set(places) == set(files) - {"several.zip"} | {"several.zip/a.jsonl", "several.zip/b.txt"}
    pointed = set()
    for name, results in places.items():
        for result, region in results:
            if region is None:
                continue
            pointed.add((name, result["ruleId"]))
            if name.endswith(".txt"):
                text = files[name].decode()
                at = region["charOffset"]
                assert text[at : at + region["charLength"]] == LOOP
                lines = text.split("\n")
                before = "".join(line + "\n" for line in lines[: region["startLine"] - 1])
                assert len(before) + region["startColumn"] - 1 == at
                before = "".join(line + "\n" for line in lines[: region["endLine"] - 1])
                assert len(before) + region["endColumn"] - 1 == at + region["charLength"]
            else:
                line = files[name].removeprefix(b"\xef\xbb\xbf").split(b"\n")[region["startLine"] - 1]
                said_there = json.loads(line)
                wanted = LITERAL if result["ruleId"] == "LZR020" else ROUNDS if result["ruleId"] == "LZR010" else LOOP
                assert wanted in (said_there.get("generated_texts") or [said_there["messages"][-1]["content"]])
    assert pointed == {
        ("lines.jsonl", "LZR001"),
        ("lines.jsonl", "LZR020"),
        ("lines.jsonl", "LZR010"),
        ("bom.ndjson", "LZR001"),
        ("bom.ndjson", "LZR020"),
        ("one.jsonl", "LZR001"),
        ("lines.json", "LZR001"),
        ("lines.json", "LZR020"),
        ("plain.txt", "LZR002"),
    }
