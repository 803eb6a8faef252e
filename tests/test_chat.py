"""`Chat`: each turn decodes only what is new, and answers as the same messages would be answered alone."""

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("llama_cpp")

from lzsampler import LzsError, Params, sequence_seed
from lzsampler.decoding.chat import Chat
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.generate import generate
from lzsampler.llama.model import Model
from lzsampler.models import default_model

GREEDY = Params(temperature=0.0)
HOT = Params(temperature=0.8, seed=5)
QUESTIONS = ("What is 70 + 479?", "What is 12 + 30?", "And what is 5 + 6?")


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    with Model(default_model(), n_ctx=700, n_threads=1) as opened:
        yield opened


@pytest.fixture
def decoded(model: Model, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Fills with the number of tokens of each prompt, or part of one, that is decoded."""
    numbers: list[int] = []
    decode = model.decode

    def counting(tokens: Any) -> None:
        numbers.append(len(tokens))
        decode(tokens)

    monkeypatch.setattr(model, "decode", counting)
    return numbers


def test_a_conversation_grows(model: Model) -> None:
    chat = Chat(model, GenerationConfig(GREEDY), system="Be brief.")
    assert chat.messages == [{"role": "system", "content": "Be brief."}]
    seen: list[str] = []
    first = chat.say(QUESTIONS[0], seen.append)
    assert "".join(seen) == first.text
    alone = generate(model, [chat.messages[0], {"role": "user", "content": QUESTIONS[0]}], GenerationConfig(GREEDY))
    assert (first.text, first.tokens) == (alone.text, alone.tokens)
    chat.say(QUESTIONS[1])
    assert [message["role"] for message in chat.messages] == ["system", "user", "assistant", "user", "assistant"]
    assert chat.messages[2] == {"role": "assistant", "content": first.content, "reasoning_content": first.reasoning}
    chat.messages.clear()
    assert len(chat.messages) == 5  # it was a copy
    chat.reset()
    assert chat.messages == [{"role": "system", "content": "Be brief."}]
    assert chat.say(QUESTIONS[0]).tokens == first.tokens


def test_only_what_is_new_is_decoded(model: Model, decoded: list[int]) -> None:
    model.keep(0)
    chat = Chat(model, GenerationConfig(GREEDY))
    sizes = []
    for question in QUESTIONS:
        asked = [*chat.messages, {"role": "user", "content": question}]
        prompt = model.tokenize(model.chat_prompt(asked))
        common = next((i for i, pair in enumerate(zip(model.past, prompt, strict=False)) if pair[0] != pair[1]), 0)
        chat.say(question)
        sizes.append((len(prompt) - common, common))
    assert decoded == [new for new, _ in sizes]
    assert sizes[0][1] == 0
    assert sizes[1][1] > 5
    assert sizes[2][1] > sizes[1][1] + 5


def test_answers_are_those_to_the_whole_conversation(model: Model) -> None:
    """The embedded model's logits do not depend on how a prompt is cut into batches."""
    chat = Chat(model, GenerationConfig(HOT, max_tokens=60))
    for turn, question in enumerate(QUESTIONS):
        asked = [*chat.messages, {"role": "user", "content": question}]
        made = chat.say(question)
        with Model(default_model(), n_ctx=700, n_threads=1) as fresh:
            seed = sequence_seed(5, turn) if turn else 5
            alone = generate(fresh, asked, GenerationConfig(Params(temperature=0.8, seed=seed), max_tokens=60))
        assert made.tokens == alone.tokens


def test_options_hold_for_every_answer(model: Model) -> None:
    chat = Chat(model, GenerationConfig(GREEDY, max_tokens=3, stop=("no such text",)))
    assert [chat.say(question).finish_reason for question in QUESTIONS[:2]] == ["length", "length"]
    chat = Chat(model, GenerationConfig(GREEDY, max_tokens=80, ignore_eos=True))
    assert chat.say(QUESTIONS[0]).finish_reason == "length"


def test_a_model_that_cannot_go_back_decodes_all_of_it(
    model: Model, decoded: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [Chat(model, GenerationConfig(GREEDY)).say(QUESTIONS[0]).text]
    decoded.clear()

    def only_all(n: int = 0) -> None:
        whole(0)
        if n:
            raise LzsError("cannot go back")

    whole = model.keep
    monkeypatch.setattr(model, "keep", only_all)
    chat = Chat(model, GenerationConfig(GREEDY))
    texts.append(chat.say(QUESTIONS[0]).text)
    n = len(model.tokenize(model.chat_prompt([{"role": "user", "content": QUESTIONS[0]}])))
    assert (decoded, texts[0]) == ([n], texts[1])


def test_a_full_context_says_what_to_do_and_changes_nothing(model: Model) -> None:
    chat = Chat(model, GenerationConfig(GREEDY, max_tokens=5))
    chat.say(QUESTIONS[0])
    before = chat.messages
    with pytest.raises(
        LzsError, match=r"tokens, but the context holds 700: begin a new conversation, or open"
    ) as error:
        chat.say("word " * 800)
    assert "\n" not in str(error.value)
    assert chat.messages == before
    assert chat.say("Go on").tokens


def test_an_interrupt_keeps_what_was_written(model: Model) -> None:
    def at_once(text: str) -> None:
        raise KeyboardInterrupt

    chat = Chat(model, GenerationConfig(GREEDY))
    made = chat.say(QUESTIONS[0], at_once)
    assert (made.finish_reason, chat.messages[-1]["role"]) == ("interrupted", "assistant")
    assert chat.say(QUESTIONS[1]).finish_reason == "stop"  # and the context is still the conversation's


def test_an_interrupt_before_the_first_text_takes_the_question_back(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(tokens: object) -> None:
        raise KeyboardInterrupt

    chat = Chat(model, GenerationConfig(GREEDY))
    with monkeypatch.context() as patched:
        patched.setattr(model, "decode", interrupted)
        assert chat.say(QUESTIONS[0]).finish_reason == "interrupted"
    assert chat.messages == []
    assert chat.turn is not None
    assert chat.turn.messages == ({"role": "user", "content": QUESTIONS[0]},)
    assert chat.say(QUESTIONS[0]).content == "549"


def test_a_turn_is_what_generate_makes_the_answer_from(model: Model) -> None:
    chat = Chat(model, GenerationConfig(HOT, max_tokens=40))
    assert chat.turn is None
    chat.say(QUESTIONS[0])
    made = chat.say(QUESTIONS[1])
    turn = chat.turn
    assert turn is not None
    assert list(turn.messages) == chat.messages[:-1]
    alone = generate(model, turn.messages, turn.config)
    assert made.tokens == alone.tokens
    chat.reset()
    assert chat.turn is None


def test_refusals(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="a message must be a text that is not empty, got ''"):
        Chat(model, GenerationConfig(GREEDY)).say("")
    with pytest.raises(ValueError, match="max_tokens must be from -1"):
        Chat(model, GenerationConfig(GREEDY, max_tokens=-2))
    monkeypatch.delitem(model.header.metadata, "tokenizer.chat_template")
    with pytest.raises(LzsError, match="has no chat template, so it cannot hold a conversation"):
        Chat(model, GenerationConfig(GREEDY))
