"""What an audit of 1,000 generated records and the evaluation of the embedded model come to, as a few digests.

    python tests/unchanged.py audit              # the digest that tests/vectors/audit_1000.json holds
    python tests/unchanged.py evaluation FOLDER  # of a folder that `lzs eval --grid quick --limit 5 -o FOLDER` made

Only names that every version has are imported, so that the same file runs on the code of another commit, with that on
PYTHONPATH. The digest of an evaluation says that texts and results are the same on one machine: another processor may
round the model's logits otherwise.
"""

import gzip
import hashlib
import json
import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

RECORDS = 1000
_SYLLABLES = ("ka", "ti", "mor", "el", "da", "shi", "ran", "po", "ve", "lun", "é", "ss", "к")
# The ratios depend on the version of libdeflate; the others did not exist when the digest was made.
_NOT_COMPARED = ("zlib_ratio", "zlib_tail_ratio", "tail_rep4", "ser4", "frequent_30_gram")
_LATER_RULES = ("LZR011", "LZR012")


def _prose(rng: random.Random, words: int) -> str:
    made = ["".join(rng.choices(_SYLLABLES, k=rng.randrange(1, 5))) for _ in range(words)]
    return "".join(word + rng.choice((" ", " ", " ", ", ", ". ", ".\n", "\n\n")) for word in made)


def _loop(rng: random.Random) -> str:
    unit, copies = _prose(rng, rng.randrange(1, 12)), rng.randrange(3, 40)
    kind = rng.randrange(5)
    if kind == 0:  # a counter
        return "".join(f"{unit.strip()} {i}\n" for i in range(copies))
    if kind == 1:  # words with other white space between them
        return "".join(word + rng.choice((" ", "  ", "\n")) for _ in range(copies) for word in unit.split())
    if kind == 2:  # a ruler, which only the literal rule counts
        return "-" * copies * 3
    return unit * copies


def text(rng: random.Random) -> str:
    """Return a text, three of seven with something that repeats in it, one of five with reasoning before the answer."""
    made = _prose(rng, rng.randrange(0, 300))
    if rng.randrange(7) < 3:
        made += _loop(rng)
        if rng.randrange(2):
            made += _prose(rng, rng.randrange(1, 100))
    return f"<think>{_prose(rng, 20)}{made[: rng.randrange(400)]}</think>{made}" if rng.randrange(5) == 0 else made


def write(folder: Path) -> None:
    """Write `RECORDS` records in several formats, and a few damaged lines, into an empty folder."""
    rng = random.Random(20131)
    chat, completions, sharegpt, broken = [], [], [], 0
    for i in range(RECORDS - 100):
        about = {"model": f"m{i % 3}", "temperature": (i % 4) / 4}
        kind = i % 3
        if kind == 0:
            messages = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": text(rng)}]
            chat.append(json.dumps({"id": f"c{i}", **about, "messages": messages}))
        elif kind == 1:
            completions.append(json.dumps({**about, "prompt": "Go on.", "completion": text(rng)}, ensure_ascii=False))
        else:
            turns = [{"from": "human", "value": "Go on."}, {"from": "gpt", "value": text(rng)}]
            sharegpt.append({"id": f"s{i}", "conversations": turns})
        if i % 150 == 149:
            chat.append('{"messages": [')
            broken += 1
    (folder / "chat.jsonl").write_text("\n".join(chat) + "\n", encoding="utf-8")
    packed = gzip.compress(("\n".join(completions) + "\n").encode("utf-8"), mtime=0)
    (folder / "completions.jsonl.gz").write_bytes(packed)
    (folder / "sharegpt.json").write_text(json.dumps(sharegpt, indent=1), encoding="utf-8")
    (folder / "texts").mkdir()
    for i in range(100):
        (folder / "texts" / f"{i:03}.txt").write_text(text(rng), encoding="utf-8", newline="")


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode("ascii")).hexdigest()


def _rounded(value: Any) -> Any:
    """Return a value with its floats in 12 digits: sums may be made in another order."""
    if isinstance(value, float):
        return f"{value:.12g}"
    if isinstance(value, dict):
        return {key: _rounded(inside) for key, inside in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(inside) for inside in value]
    return value


def audit() -> dict[str, Any]:
    """Return what an audit of the generated records comes to."""
    from lzsampler import audit_files

    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        os.chdir(folder)
        try:
            with audit_files(["chat.jsonl", "completions.jsonl.gz", "sharegpt.json"], by=("model", "file")) as rows:
                summary = rows.summary.to_json()
                found = [_rounded(_row(record)) for record in rows if _known(record)]
                outcomes = [[outcome.file, outcome.id, outcome.looping] for outcome in rows.outcomes()]
            with audit_files("texts", format="text") as rows:
                texts = rows.summary.to_json()
                found += [_rounded(_row(record)) for record in rows if _known(record)]
        finally:
            os.chdir(here)
    for made in (summary, texts):
        for name in _NOT_COMPARED:
            made["metrics"].pop(name, None)
    return {
        "records": summary["records"] + texts["records"],
        "looping": summary["looping"] + texts["looping"],
        "bad_records": summary["bad_records"] + texts["bad_records"],
        "summaries": _digest(_rounded([_figures(summary), _figures(texts)])),
        "findings": _digest(found),
        "outcomes": _digest(outcomes),
    }


def _figures(summary: dict[str, Any]) -> dict[str, Any]:
    """Return a summary without the words of its bad records, and without what version 0.1.0 did not look for."""
    later = ("stuck", "formats", "files", "unread", "passed_over", "conversations", "turn", "worst_turns", "lz_vocab")
    made = _without(later, summary)
    made["rules"] = _without(later, summary["rules"])
    made["rules"]["select"] = [code for code in made["rules"]["select"] if code not in _LATER_RULES]
    made["rule_counts"] = {code: n for code, n in summary["rule_counts"].items() if code not in _LATER_RULES}
    made["groups"] = [_without(later, group) for group in summary["groups"]]
    return {**made, "bad": [[bad["file"], bad["line"]] for bad in summary["bad"]]}


def _without(beginnings: tuple[str, ...], fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if not name.startswith(beginnings)}


def _known(record: Any) -> bool:
    """Whether a record has a finding of a rule that version 0.1.0 had: others were not among the rows."""
    return any(f.rule not in _LATER_RULES for f in record.findings)


def _row(record: Any) -> list[Any]:
    findings = [
        [f.field, f.level, f.rule, f.start, f.end, f.period, f.copies, f.unit, f.share, f.tail, f.wasted_tokens]
        for f in record.findings
        if f.rule != "LZR011"
    ]
    metrics = {name: value for name, value in record.metrics.items() if name not in _NOT_COMPARED}
    head = [record.file, record.number, record.id, dict(record.groups), record.looping, record.literal]
    return [*head, record.characters, findings, metrics, record.texts]


def evaluation(folder: Path) -> dict[str, Any]:
    """Return digests of the texts of an evaluation's folder, and of its results."""
    lines = [json.loads(line) for line in (folder / "transcripts.jsonl").read_text("utf-8").splitlines()]
    texts = [
        [*(row["eval"][name] for name in ("kind", "prompt", "task", "seed", "answer", "right")), row["messages"],
         row["tokens"], row["finish_reason"], row["repetition"]["loops"], row["repetition"]["rep4"]]
        for row in lines
    ]  # fmt: skip
    results = json.loads((folder / "results.json").read_text("utf-8"))
    return {"texts": len(texts), "transcripts": _digest(texts), "results": _digest(_rounded(results))}


if __name__ == "__main__":
    print(json.dumps(audit() if sys.argv[1] == "audit" else evaluation(Path(sys.argv[2])), indent=1))
