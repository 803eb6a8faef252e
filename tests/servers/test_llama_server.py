"""An unmodified llama-server with the library preloaded: loops, markers, slots, streams, drafts, routers."""

import json
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from llama_server import LOOPS, Servers
from lzsampler import audit

DEFAULT: dict[str, Any] = {"preset": "default"}
OFF: dict[str, Any] = {"dry_sequence_breakers": ["\n", 'lzs:{"penalty": 0}']}
MESSAGES = [{"role": "user", "content": "Name three colours."}]


def test_a_loop_ends_and_a_marker_brings_it_back(start: Servers, smollm2: Path) -> None:
    plain, ours = start("-m", smollm2, settings=None), start("-m", smollm2, settings=DEFAULT)
    loop = plain.complete()
    assert audit(loop).looping
    text = ours.complete()
    assert not audit(text).looping
    assert ours.complete(**OFF) == loop
    assert ours.complete(dry_sequence_breakers=["\n", "lzs:{}"]) == text
    assert ours.complete(dry_sequence_breakers=['lzs:{"preset": "guard"}']) != text
    assert "lzsampler: on: preset default, penalty 0.3" in ours.output()
    assert ours.complete(dry_sequence_breakers=['lzs:{"penalty": "much"}']) == text
    assert "lzsampler: a request's marker was ignored: penalty must be a number from 0 to 100" in ours.output()


def test_dry_is_dry(start: Servers, smollm2: Path) -> None:
    plain, ours = start("-m", smollm2, settings=None), start("-m", smollm2, settings={"penalty": 0})
    settings: dict[str, Any] = {"dry_multiplier": 0.8, "dry_sequence_breakers": ["\n", "*"], "dry_penalty_last_n": 1024}
    assert plain.complete(**settings) == ours.complete(**settings)


def test_two_slots_with_other_settings_at_once(start: Servers, smollm2: Path) -> None:
    server = start("-m", smollm2, "-np", "2", "-c", "4096", settings=DEFAULT)
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(server.complete, **body) for body in ({}, OFF, {}, OFF, {"n_predict": 20}, OFF)]
        texts = [job.result() for job in jobs]
    looping = [audit(text).looping for text in texts]
    assert looping == [False, True, False, True, False, True]


def test_history_all_sees_the_prompt(start: Servers, smollm2: Path) -> None:
    prompt = "The cat sat on the red mat and looked at the moon. The cat sat on the red mat and looked at"
    server = start("-m", smollm2, settings={"penalty": 3})
    seen = {"dry_sequence_breakers": ['lzs:{"history": "all"}']}
    assert server.complete(prompt, 2).startswith(" the moon")
    assert not server.complete(prompt, 2, **seen).startswith(" the moon")
    server.complete(prompt, 2)  # what a slot did before does not matter
    assert server.complete(prompt, 2).startswith(" the moon")


def test_a_stream_and_a_client_that_goes_away(start: Servers, smollm2: Path) -> None:
    server = start("-m", smollm2, settings=DEFAULT)
    body = {"prompt": LOOPS, "temperature": 0, "cache_prompt": False, "n_predict": 300}
    for _ in range(3):
        with httpx.stream("POST", f"{server.url}/completion", json={**body, "stream": True}, timeout=60) as answer:
            next(answer.iter_lines())
    with httpx.stream("POST", f"{server.url}/completion", json={**body, "stream": True}, timeout=120) as answer:
        lines = [json.loads(line[6:]) for line in answer.iter_lines() if line.startswith("data: ")]
    assert "".join(line["content"] for line in lines) == server.complete()


def test_the_openai_client(start: Servers, smollm2: Path) -> None:
    openai = pytest.importorskip("openai")
    server = start("-m", smollm2, "--jinja", "--api-key", "secret", settings=DEFAULT)
    client = openai.OpenAI(base_url=f"{server.url}/v1", api_key="secret", max_retries=0)

    def ask(**more: Any) -> Any:
        return client.chat.completions.create(model="m", messages=MESSAGES, temperature=0, max_tokens=200, **more)

    text = ask(extra_body={"cache_prompt": False}).choices[0].message.content
    pieces = [chunk.choices[0].delta.content or "" for chunk in ask(stream=True) if chunk.choices]
    assert "".join(pieces) == text
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"colours": {"type": "array", "items": {"type": "string"}, "maxItems": 4}},
    }
    schema |= {"required": ["colours"], "additionalProperties": False}
    made = ask(response_format={"type": "json_schema", "json_schema": {"name": "colours", "schema": schema}})
    assert isinstance(json.loads(made.choices[0].message.content)["colours"], list)


def test_a_draft_model_changes_no_text(start: Servers, smollm2: Path) -> None:
    plain = start("-m", smollm2, settings=DEFAULT)
    drafted = start("-m", smollm2, "-md", smollm2, "--spec-draft-n-max", "4", settings=DEFAULT)
    texts = [server.complete(n=120) for server in (plain, drafted)]
    assert not any(audit(text).looping for text in texts)
    assert texts[0][:100] == texts[1][:100]  # blocks of tokens round otherwise, which may change a later token


@pytest.mark.parametrize(
    "words",
    [["--backend-sampling"], ["-c", "256", "--context-shift", "-n", "400"], ["-fa", "on"]],
    ids=str,
)
def test_other_ways_to_run(start: Servers, smollm2: Path, words: list[str]) -> None:
    server = start("-m", smollm2, *words, settings=DEFAULT)
    text = server.complete()
    assert len(text) > 100
    assert not audit(text).looping


def test_a_router_and_its_children(start: Servers, smollm2: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.gguf").symlink_to(smollm2)
    router = start("--models-dir", str(folder), "--models-max", "1", settings=DEFAULT)
    for name in ("one", "two", "one"):
        text = router.post("/v1/completions", model=name, prompt=LOOPS, temperature=0, max_tokens=300)["choices"][0][
            "text"
        ]
        assert not audit(text).looping
    assert len(re.findall("lzsampler: on: preset default", router.output())) >= 2


def test_a_child_of_a_program_without_llama_cpp(start: Servers, smollm2: Path, tmp_path: Path) -> None:
    """Ollama starts llama-server so."""
    parent = tmp_path / "parent"
    parent.write_text(f"#!/bin/sh\ntrap 'kill $!' TERM\n{start.program} \"$@\" &\nwait\n", encoding="utf-8")
    parent.chmod(0o755)
    folder, start.program = str(Path(start.program).parent), str(parent)
    server = start("-m", smollm2, settings=DEFAULT, LD_LIBRARY_PATH=folder)
    assert not audit(server.complete()).looping
    assert server.output().count("lzsampler: ") == 1


def test_a_chain_without_dry_says_so_at_the_end(start: Servers, smollm2: Path) -> None:
    server = start("-m", smollm2, "--samplers", "top_k;temperature", settings=DEFAULT)
    server.complete(n=5)
    server.process.send_signal(signal.SIGINT)
    server.process.wait(30)
    assert "lzsampler: no penalties: llama.cpp was loaded, but this process made no chain with DRY" in server.output()


def test_lzs_generate_writes_the_same_text(start: Servers, smollm2: Path) -> None:
    """With one and the same libllama: another build of it rounds otherwise."""
    import llama_cpp

    from lzsampler import GenerationConfig, Model, Params, generate

    if "python" not in start.program:
        pytest.skip("this server cannot run with the libllama of llama-cpp-python")
    folder = str(Path(llama_cpp.__file__).parent / "lib")
    words = ["-np", "1", "-c", "2048", "-b", "512", "-ub", "512", "-fa", "on"]
    server = start("-m", smollm2, *words, settings=DEFAULT, LD_LIBRARY_PATH=folder)
    with Model(smollm2, n_ctx=2048, n_threads=1, flash_attn=True) as model:
        config = GenerationConfig(Params.recommended(model, temperature=0), max_tokens=200)
        for prompt in (LOOPS, "The history of tea", "Once upon a time"):
            assert server.complete(prompt, 200) == generate(model, prompt, config).text
