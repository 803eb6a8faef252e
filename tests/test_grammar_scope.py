"""A grammar that begins behind the thinking: `grammar_scope`, with what is done about loops, and in many texts."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from asked import asked
from lzsampler import Grammar, Params, RepetitionDetection, StuckDetection, TokenBytes
from lzsampler.decoding.policy import LoopPolicy

pytest.importorskip("llama_cpp")

from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.generate import generate
from lzsampler.decoding.generation import Generation
from lzsampler.decoding.writing import Text
from scripted import Scripted
from writings import texts_by_id

PIECES = ["<think>", "</think>", None, "\n", *"abcdefghijkl"]
TOKENS = TokenBytes([(piece or "").encode() for piece in PIECES], end=[2], special=[0, 1])
PROMPT = "<|assistant|><think>"
LOOPS = Params(temperature=0.0, repetition_detection=RepetitionDetection(8, 1, 4))


def model_of(script: Any) -> Scripted:
    return Scripted(PIECES, script, tokens_of={PROMPT: [0], "Hi": [15], "</think>": [1]})


def thinks(n: int) -> Any:
    """Thinks n letters, closes that, and wants line breaks and the letter l more than anything else."""

    def script(past: Sequence[int]) -> list[float]:
        row = np.random.default_rng(len(past)).normal(size=len(PIECES))
        row[[0, 1, 2]] = -20.0
        row[3], row[15] = (9.0, 8.0) if 1 in past else (-9.0, -9.0)
        if len(past) == n + 1 and 1 not in past:
            row[1] = 30.0
        return [float(x) for x in row]

    return script


def written(script: Any, pattern: str, prompt: str = PROMPT, **more: Any) -> Generation:
    params = more.pop("params", Params(temperature=0.0))
    config, hooks = asked(params, max_tokens=60, grammar=Grammar.regex(pattern, TOKENS), **more)
    return generate(model_of(script), prompt, config, **hooks)


def test_it_begins_behind_the_thinking() -> None:
    free = generate(model_of(thinks(9)), PROMPT, GenerationConfig(Params(temperature=0.0), max_tokens=12))
    for fast in (True, False):
        made = written(thinks(9), "[abc]{4}dd", grammar_scope=["answer"], fast_forward=fast)
        assert made.tokens[:10] == free.tokens[:10]
        assert made.reasoning == free.text[:9]
        assert made.text[9:17] == "</think>"
        assert made.content == made.constrained == made.text[17:]
        assert len(made.content) == 6
        assert made.content.endswith("dd")
        assert set(made.content[:4]) <= {*"abc"}
        assert (made.finish_reason, made.forced) == ("stop", 2 if fast else 0)
    everywhere = written(thinks(9), "[abc]{4}dd")
    assert everywhere.constrained == everywhere.text
    assert everywhere.reasoning is not None  # all of it, which is not what one wants
    assert everywhere.content == ""


def test_a_choice_is_content_and_no_thought() -> None:
    """Whatever the prompt opened: a value may hold a mark of thinking, and it is what was asked for."""
    pieces = ["<think>", None, *'{"a":/<thinkb>}']
    tokens = TokenBytes([(piece or "").encode() for piece in pieces], end=[1], special=[0])
    text = '{"a":"b</think>b"}'
    model = Scripted(pieces, lambda past: [0.0] * len(pieces), tokens_of={PROMPT: [0], "Hi": [5]})
    grammars = (
        Grammar.choices([text], tokens),
        Grammar.json_schema(
            {"type": "object", "properties": {"a": {"const": "b</think>b"}}, "required": ["a"]}, tokens
        ),
    )
    for prompt in (PROMPT, "Hi"):
        for grammar in grammars:
            made = generate(
                model,
                prompt,
                GenerationConfig(
                    Params(temperature=0.0),
                    max_tokens=60,
                    grammar=grammar,
                    on_loop=LoopPolicy(penalty_scope=["answer"]),
                ),
            )
            assert (made.reasoning, made.content, made.constrained, made.text) == (None, text, text, text)
            scoped = generate(
                model,
                "Hi",
                GenerationConfig(Params(temperature=0.0), max_tokens=60, grammar=grammar, grammar_scope=["answer"]),
            )
            assert (scoped.reasoning, scoped.content) == (None, text)  # since no thought is open
        whole = generate(
            model,
            prompt,
            GenerationConfig(
                Params(temperature=0.0), max_tokens=60, grammar=Grammar.regex(text.replace("{", r"\{"), tokens)
            ),
        )
        assert (whole.reasoning, whole.content) == ('{"a":"b', 'b"}')  # a pattern may have marks of its own


def test_a_prompt_that_opens_nothing_has_it_from_the_start() -> None:
    for scope in (["answer"], ["answer", "tool"], ["thinking", "answer"], None):
        made = written(thinks(3), "[abc]{4}", prompt="Hi", grammar_scope=scope)
        assert made.content == made.constrained == made.text
        assert len(made.text) == 4


def test_a_text_that_never_ends_its_thinking_has_none() -> None:
    made = written(thinks(999), "[abc]{4}", grammar_scope=["answer"])
    assert (made.finish_reason, made.constrained, made.content) == ("length", "", "")


@pytest.mark.parametrize("action", ["rewind", "trim", "boost", "close-think"])
def test_a_loop_in_the_thinking_is_acted_on(action: Any) -> None:
    def script(past: Sequence[int]) -> list[float]:
        """aaaa..., and after 20 tokens the end of the thinking."""
        return [9.0 if i == (1 if len(past) > 20 else 4) else 0.0 if i > 3 else -9.0 for i in range(len(PIECES))]

    made = written(script, "e[fg]hij", params=LOOPS, on_loop=action, grammar_scope=["answer"])
    assert made.actions[0].name == action
    if action in ("close-think", "boost") or made.constrained:
        assert made.constrained == made.content
        assert made.content in ("efhij", "eghij")


def test_a_rewind_into_the_thinking_takes_the_grammar_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stretch without anything new begins in the thinking: the text goes on there, and the grammar begins later."""
    cuts: list[tuple[int | None, int | None]] = []
    cut = Text._cut

    def noted(text: Text, keep: int) -> None:
        assert text._steering is not None
        before = text._steering.grammar_from
        cut(text, keep)
        cuts.append((before, text._steering.grammar_from))

    monkeypatch.setattr(Text, "_cut", noted)

    def script(past: Sequence[int]) -> list[float]:
        """abcabc, the mark, and abc again and again; with the a of the second copy forbidden, d and the mark."""
        row, text = [0.0 if i > 3 else -9.0 for i in range(len(PIECES))], list(past[1:])
        row[4 + (len(text) - (1 in text)) % 3] = 9.0
        row[7] = 5.0
        if len(text) == 6 or (text and text[-1] == 7):
            row[1] = 20.0
        return row

    params = Params(temperature=0.0, stuck_detection=StuckDetection(8, 1, 2, 1, 100))
    made = written(script, "[a-d]{8}", params=params, on_loop="rewind", loop_rule="stuck", grammar_scope=["answer"])
    assert cuts[0] == (7, None)
    assert made.text.startswith("abcd</think>")
    assert made.constrained == made.content
    assert Grammar.regex("[a-d]{8}", TOKENS).match(made.content) != "no"


def test_refusals() -> None:
    for scope, why in (([], "must have a part"), (["tool"], "must have the answer"), (["end"], "must be some of")):
        with pytest.raises(ValueError, match=f"grammar_scope {why}"):
            written(thinks(3), "[abc]{4}", grammar_scope=scope)
    with pytest.raises(TypeError, match="grammar_scope must be a list of parts, got 5"):
        written(thinks(3), "[abc]{4}", grammar_scope=5)
    with pytest.raises(ValueError, match="close-think"):
        written(thinks(3), "[abc]{4}", on_loop="close-think", grammar_scope=["thinking", "answer"])


def test_without_a_grammar_nothing_about_it_is_taken_in_silence() -> None:
    model, greedy = model_of(thinks(3)), Params(temperature=0.0)
    with pytest.raises(ValueError, match="grammar_scope has no effect without a grammar"):
        generate(model, PROMPT, GenerationConfig(greedy, max_tokens=4, grammar_scope=["answer"]))
    with pytest.warns(UserWarning, match="structure='free' has no effect without a grammar") as warned:
        generate(model, PROMPT, GenerationConfig(Params(temperature=0.0, structure="free"), max_tokens=4))
    assert warned[0].filename == __file__


def test_json_behind_a_thought(tmp_path: Any) -> None:
    """Of the embedded model, which never closes a thought by itself: the loop rule does."""
    from lzsampler.decoding.many import Request, generate_many
    from lzsampler.llama.model import Model
    from lzsampler.models import default_model

    schema = {"type": "object", "properties": {"sum": {"type": "integer", "maximum": 99}}, "required": ["sum"]}
    with Model(default_model(), n_threads=1) as model:
        grammar = Grammar.json_schema(schema, model)
        params = replace(LOOPS, repetition_detection=RepetitionDetection(30, 1, 3))
        prompt = "What is 70 + 479? <think>"
        config = GenerationConfig(
            params, max_tokens=400, grammar=grammar, grammar_scope=["answer"], on_loop="close-think"
        )
        made = generate(model, prompt, config)
        assert made.reasoning
        assert list(json.loads(made.content)) == ["sum"]
        request = Request(
            0,
            prompt,
            GenerationConfig(params, max_tokens=400, grammar=grammar, grammar_scope=["answer"], on_loop="close-think"),
        )
        other = texts_by_id(generate_many(model, [request]))[0]
        assert (other.tokens, other.constrained) == (made.tokens, made.constrained)
