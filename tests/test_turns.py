"""Loops over the turns of a conversation: what is found, where, in all outputs, and what is left alone."""

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from lzsampler import audit_files, save
from lzsampler.auditing.audit_files import Audit
from lzsampler.util.stats import wilson

lzs = import_module("lzsampler.cli.main").lzs

DATA = Path(__file__).parent / "data" / "formats"
THOUGHT = "Let me look at the test once more before I change anything in the parser of the settings."


def call(name: str, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": f"call_{id(function)}", "function": function}]}


def said(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def result(text: str = "ok") -> dict[str, Any]:
    return {"role": "tool", "content": text}


def conversation(*turns: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": "Mend the test."}, *(part for turn in turns for part in (turn, result()))]


def audited(tmp_path: Path, *conversations: list[dict[str, Any]], **rules: Any) -> Audit:
    path = tmp_path / "agent.jsonl"
    rows = [json.dumps({"id": f"c{i}", "messages": messages}) for i, messages in enumerate(conversations)]
    path.write_text("\n".join(rows) + "\n")
    return audit_files(path, workers=1, **{"turns": True, **rules})


CYCLE = [
    call("read_file", path="src/settings/parser.py"),
    said(THOUGHT),
    call("run", command="pytest -q tests/test_parser.py"),
]


def test_a_cycle_over_many_calls(tmp_path: Path) -> None:
    """No message repeats anything; the cycle does."""
    with audited(tmp_path, conversation(said("I begin with the tests."), *CYCLE * 60, said("Done."))) as made:
        (found,) = [record for record in made if record.is_conversation]
        assert (found.id, found.line, len(found.findings)) == ("c0", 1, 1)
        loop = found.findings[0]
        assert (loop.rule, loop.field, loop.level) == ("LZR012", "turns", "turn")
        assert (loop.start, loop.end, loop.period, loop.copies) == (1, 181, 3, 60.0)
        assert loop.unit.startswith('read_file({"path": "src/settings/parser.py"}) | Let me look at the test')
        assert not loop.tail
        summary = made.summary.to_json()
        assert (summary["records"], summary["looping"], summary["turn_loops"]) == (62, 0, 1)
        assert summary["rule_counts"] == {"LZR012": 1}
        assert summary["worst_turns"][0]["first"] == 1


def test_it_is_off_unless_asked_for(tmp_path: Path) -> None:
    with audited(tmp_path, conversation(*CYCLE * 60), turns=False) as made:
        assert (made.summary.turn_loops, made.summary.total.records, list(made)) == (0, 60, [])
    with audited(tmp_path, conversation(*CYCLE * 60), ignore=("LZR012",)) as made:
        assert (made.summary.turn_loops, made.summary.total.records) == (0, 60)


def test_an_agent_that_only_calls_tools(tmp_path: Path) -> None:
    with audited(tmp_path, conversation(*[call("look", path="src/settings/parser.py", line=1)] * 30)) as made:
        assert (made.summary.turn_loops, made.summary.total.records, made.summary.bad_records) == (1, 0, 0)


@pytest.mark.parametrize(
    "turns",
    [
        [said("Done.")] * 60,  # short answers come again rightly
        [said("positive"), said("negative")] * 60,  # labels
        [call("read_file", path=f"src/settings/part_{i}.py") for i in range(60)],  # other arguments
        [call("edit", at=i) if i % 2 else call("run", command="pytest -q") for i in range(60)],
        [call("run", command="pytest -q tests/test_parser_of_the_settings.py -x --maxfail=1")] * 4,  # too few
        [call("status", job=5)] * 15,  # waiting: 15 short calls
    ],
)
def test_what_is_no_loop(tmp_path: Path, turns: list[dict[str, Any]]) -> None:
    with audited(tmp_path, conversation(*turns)) as made:
        assert made.summary.turn_loops == 0


def test_conversations_are_kept_apart_and_answers_to_one_prompt_are_no_turns(tmp_path: Path) -> None:
    answer = "The answer is always the same, whatever the seed may be, since nothing is drawn at all here."
    with audited(tmp_path, *[conversation(said(answer))] * 20) as made:
        assert made.summary.turn_loops == 0
    path = tmp_path / "choices.jsonl"
    choices = [{"index": i, "message": said(answer)} for i in range(20)]
    path.write_text(json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": choices}))
    with audit_files(path, turns=True) as made:
        assert (made.summary.total.records, made.summary.turn_loops) == (20, 0)
    with audited(tmp_path, conversation(*[said(answer)] * 5)) as made:
        assert made.summary.turn_loops == 1


def test_sessions_of_agents(tmp_path: Path) -> None:
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make test 2>&1 | tail -n 40"}}
    rows = [
        {
            "type": "assistant",
            "sessionId": "s1",
            "uuid": str(i),
            "message": {"role": "assistant", "model": "m", "content": [use]},
        }
        for i in range(40)
    ]
    claude = tmp_path / "claude.jsonl"
    claude.write_text("".join(json.dumps(row) + "\n" for row in rows))
    codex = tmp_path / "codex.jsonl"
    item = {"type": "function_call", "name": "shell", "arguments": '{"command": ["make", "test"]}', "call_id": "c"}
    events = [{"timestamp": "t", "type": "session_meta", "payload": {"id": "s2"}}]
    events += [{"timestamp": "t", "type": "response_item", "payload": {**item, "call_id": f"c{i}"}} for i in range(40)]
    codex.write_text("".join(json.dumps(row) + "\n" for row in events))
    with audit_files([claude, codex], turns=True) as made:
        found = {record.id: record.findings[0] for record in made}
        assert {id: (loop.start, loop.end, loop.period) for id, loop in found.items()} == {
            "s1": (0, 40, 1),
            "s2": (0, 40, 1),
        }


def test_conversations_of_lzs_generate(tmp_path: Path) -> None:
    """Each answer of -cnv is a row with all that came before it; the rows of a conversation belong together."""
    pytest.importorskip("llama_cpp")
    path = tmp_path / "talk.jsonl"
    answer = "It is what it is, and what it is not is what it was before we came to ask about it at all."
    command = [sys.executable, "-c", "from lzsampler.cli.main import main; main()", "generate", "-cnv", "-q"]
    command += ["--save", str(path), "--choice", answer, "-n", "200", "-sys", "Be brief."]
    typed = ["And this?"] * 6 + ["/reset", "And that?", "And those?", "/reset", *["And this?"] * 2]
    subprocess.run(command, input="\n".join(typed), text=True, check=True, timeout=120)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [len(row["messages"]) for row in rows] == [3, 5, 7, 9, 11, 13, 3, 5, 3, 5]
    with audit_files(path, workers=1, turns=True) as made:
        (found,) = [record for record in made if record.is_conversation]
        assert (found.id, found.line) == (rows[0]["id"], 1)
        loop = found.findings[0]
        assert (loop.start, loop.end, loop.period) == (0, 6, 1)
        summary = made.summary
        assert (summary.turn_loops, summary.turn_conversations) == (1, 3)
        assert (summary.total.records, summary.total.conversations) == (10, 3)
    without = [{**row, "prompt": "And this?", "messages": row["messages"][-1:]} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in without))
    with audit_files(path, workers=1, turns=True) as made:  # texts that were continued, and not answers
        assert (made.summary.turn_conversations, made.summary.total.conversations) == (0, 10)


def test_files_of_real_programs_have_none() -> None:
    with audit_files(DATA, turns=True) as made, audit_files(DATA) as without:
        assert made.summary.turn_loops == 0
        assert made.summary.total.to_json() == without.summary.total.to_json()


def test_it_is_in_every_output(tmp_path: Path) -> None:
    with audited(tmp_path, conversation(*CYCLE * 20)) as made:
        for name in ("report.html", "loops.jsonl", "loops.csv", "loops.sarif", "summary.json"):
            save(made, tmp_path / name)
    assert "1 of 1 conversation loops over turns" in (tmp_path / "report.html").read_text()
    row = json.loads((tmp_path / "loops.jsonl").read_text())
    assert (row["rule"], row["field"], row["start"], row["end"]) == ("LZR012", "turns", 0, 60)
    assert ",turns,turn,LZR012,0,60,3,20.0," in (tmp_path / "loops.csv").read_text()
    found = "the same 3 turns 20 times in a row, turns 0 to 59 of the conversation of record c0"
    assert found in (tmp_path / "loops.sarif").read_text()
    told = CliRunner().invoke(lzs, ["audit", str(tmp_path / "agent.jsonl"), "--turns"], catch_exceptions=False)
    assert "1 of 1 conversation loops over turns (LZR012): 100 %" in told.output
    assert "the same 3 turns 20 times in a row, turns 0 to 59: " in told.output


def test_the_command_takes_a_session_of_calls_alone(tmp_path: Path) -> None:
    path = tmp_path / "agent.jsonl"
    path.write_text(json.dumps({"messages": conversation(*[call("look", path="src/settings/parser.py")] * 30)}))
    told = CliRunner().invoke(lzs, ["audit", str(path), "--turns"])
    assert (told.exit_code, "the same turn 30 times in a row, turns 0 to 29: " in told.output) == (0, True)
    assert CliRunner().invoke(lzs, ["audit", str(path)]).exit_code != 0  # there is no text


def test_the_rate_of_turns_is_of_conversations(tmp_path: Path) -> None:
    conversations = [conversation(*CYCLE * 20), *[conversation(*CYCLE, said(f"Done {i}.")) for i in range(3)]]
    with audited(tmp_path, *conversations) as made:
        summary = made.summary
        assert (summary.turn_loops, summary.turn_conversations, summary.turn_loop_rate) == (1, 4, 0.25)
        figures = summary.to_json()
        assert (figures["turn_conversations"], figures["turn_loop_rate"]) == (4, 0.25)
        assert figures["turn_loop_interval"] == list(wilson(1, 4))
    path = str(tmp_path / "agent.jsonl")
    for limit, status in (("turn_loop_rate=20%", 1), ("turn_loop_rate > 0.25", 0), ("turn_loop_rate >= 25%", 1)):
        told = CliRunner().invoke(lzs, ["audit", path, "--turns", "-q", "--fail-over", limit])
        assert told.exit_code == status, limit
    told = CliRunner().invoke(lzs, ["audit", path, "--turns", "--fail-over", "turn_loop_rate=20%"])
    assert "1 of 4 conversations loop over turns (LZR012): 25.0 %" in told.output
    assert "turn_loop_rate 0.25 is over 0.2" in told.output
    (tmp_path / "agent.jsonl").write_text(json.dumps({"messages": conversations[1]}))
    assert "0 of 1 conversation loops over turns" in CliRunner().invoke(lzs, ["audit", path, "--turns"]).output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["audit", "--select", "LZR012"], "LZR012 is found only with --turns: add --turns"),
        (["audit", "--turns", "--ignore", "LZR012"], "--ignore LZR012 turns off the only rule of --turns"),
        (["audit", "--select", "LZR001,LZR012"], "LZR012 is found only with --turns: add --turns"),
        (["audit", "--fail-over", "turn_loop_rate=1%"], "turn_loop_rate is measured only with --turns: add it"),
        (
            ["audit", "--turns", "--by", "model", "--fail-over", "m.turn_loop_rate=1%"],
            "loops over turns belong to no group",
        ),
        (["audit", "--turns", "--fail-over", "turn_loop_rate=1%"], "no conversation with turns of a model was read"),
        (["diff", "FILE", "--select", "LZR012"], "lzs diff compares records, and LZR012 is about conversations"),
    ],
)
def test_what_turns_need_is_said(tmp_path: Path, arguments: list[str], said: str) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"prompt": "p", "response": "It is so.", "model": "m"}\n')
    told = CliRunner().invoke(lzs, [*(str(path) if word == "FILE" else word for word in arguments), str(path)])
    assert told.exit_code != 0
    assert said in str(told.exception) + told.output


def test_turns_that_are_not_there_are_named(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"prompt": "p", "response": "It is so."}\n')
    told = CliRunner().invoke(lzs, ["audit", str(path), "--turns"])
    assert told.exit_code == 0
    assert "--turns: no conversation with turns of a model was read" in told.output


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"select": "LZR012", "turns": False}, "select names LZR012, which needs turns=True"),
        ({"turn_copies": 1}, "turn_copies must be"),
        ({"turns": 1}, "turns must be"),
        ({"levels": "turn"}, "levels must be"),
    ],
)
def test_wrong_settings(tmp_path: Path, rules: dict[str, Any], said: str) -> None:
    with pytest.raises((ValueError, TypeError), match=said):
        audited(tmp_path, conversation(*CYCLE), **rules)


def test_lz_bits_need_a_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("so it is")
    told = CliRunner().invoke(lzs, ["audit", str(path), "--lz-bits"])
    assert told.exit_code == 2
    assert "--tokenizer" in told.output
