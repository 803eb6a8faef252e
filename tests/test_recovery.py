"""What is done about a loop: every action on scripted models, and 10,000 runs against an adversary."""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from asked import asked
from lzsampler import STOP_ON_LOOP, STOP_ON_STUCK, Loop, LzsError, Params, RepetitionDetection, Sampler, StuckDetection
from lzsampler.decoding.actions import ActionTaken
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.parts import PARTS, Part, PartTracker
from lzsampler.decoding.policy import LoopPolicy, unpriced
from lzsampler.decoding.reasoning import closing
from lzsampler.decoding.recovery import fresh_start, whole_character
from lzsampler.params import PENALTIES, Penalty

pytest.importorskip("llama_cpp")

from lzsampler.decoding.generate import generate
from lzsampler.decoding.generation import Generation
from lzsampler.decoding.writing import Text
from scripted import Script, Scripted, cycle

LETTERS = [*"abcdefghijklmnop"]
EARLY = Params(temperature=0.0, repetition_detection=RepetitionDetection(8, 2, 3))
PROMPT = np.array([15], np.int32)


def written(script: Script, on_loop: Any, params: Params = EARLY, n: int = 60, **settings: Any) -> Generation:
    config, hooks = asked(params, max_tokens=n, on_loop=on_loop, **settings)
    return generate(Scripted(LETTERS, script), PROMPT, config, **hooks)


# -- the actions --


def test_off_is_not_stopped_by_a_detector() -> None:
    made = written(cycle([0, 1, 2], 16), "off")
    assert (made.finish_reason, made.text, made.actions, made.loop) == ("length", "abc" * 20, (), None)


def test_stop_is_what_a_detector_does_by_itself() -> None:
    for on_loop in ("stop", None):
        made = written(cycle([0, 1, 2], 16), on_loop)
        assert (made.finish_reason, made.text, made.loop) == ("repetition", "abcabcabc", Loop(0, 3, 3))
        assert made.actions == (ActionTaken("stop", 9, Loop(0, 3, 3), 9),)
    assert written(cycle([0, 1, 2], 16), None, Params(temperature=0.0)).finish_reason == "length"


def test_trim_keeps_the_first_copy() -> None:
    made = written(cycle([0, 1, 2], 16), "trim")
    assert (made.finish_reason, made.text, made.loop) == ("repetition", "abc", Loop(0, 3, 3))
    assert made.actions == (ActionTaken("trim", 9, Loop(0, 3, 3), 3, (0, 1, 2, 0, 1, 2)),)
    assert made.completion_tokens == 9


def test_rewind_forbids_what_led_into_the_second_copy_wherever_the_words_before_are_the_same() -> None:
    def script(past: Sequence[int]) -> list[float]:
        """abc again and again; but after abcx it tells the story of d, e, f... once, and then goes back to abc."""
        text, row = past[1:], [-1.0] * 16
        row[(len(text)) % 3] = 5.0
        if 9 in text:
            at = len(text) - 1 - text.index(9)
            row[3 + at if at < 6 else at % 3] = 6.0
        row[9] = 4.0
        return row

    made = written(script, "rewind", n=40)
    rewinds = [action for action in made.actions if action.name == "rewind"]
    assert made.text.startswith("abcjdefghi")
    assert rewinds[0] == ActionTaken("rewind", 9, Loop(0, 3, 3), 3, (0, 1, 2, 0, 1, 2), forbidden=(0,))
    assert made.completion_tokens == len(made.tokens) + sum(len(action.cut) for action in made.actions)


@pytest.mark.parametrize("most", [0, 1, 3])
def test_rewinds_are_counted_and_then_it_stops(most: int) -> None:
    made = written(cycle([0, 1, 2], 16), "rewind", n=400, max_recoveries=most)
    assert [action.name for action in made.actions] == ["rewind"] * most + ["stop"]
    assert made.finish_reason == "repetition"
    assert made.loop == made.actions[-1].found


def test_where_nothing_else_is_possible_the_text_ends() -> None:
    def only_one(past: Sequence[int]) -> list[float]:
        return [0.0, *[-np.inf] * 15]

    params = replace(EARLY, repetition_detection=RepetitionDetection(4, 1, 3))
    made = written(only_one, "rewind", params)
    assert (made.finish_reason, made.text) == ("repetition", "a")
    assert [action.name for action in made.actions] == ["rewind", "stop"]
    with pytest.raises(LzsError, match="no token is allowed"):  # no loop's fault
        written(lambda past: [-np.inf] * 16, "rewind")


def test_a_boost_is_over_when_the_text_is_new() -> None:
    wanted = cycle([0, 1, 2], 16)

    def script(past: Sequence[int]) -> Sequence[float]:
        """Loops for the first 20 tokens; then every token is as good as any other."""
        return wanted(past) if len(past) < 20 else [0.0] * 16

    params = replace(EARLY, repetition_detection=RepetitionDetection(8, 3, 3))
    made = written(script, "boost", params, n=200, max_recoveries=1)
    boost, stop = made.actions
    assert (boost.name, boost.at, boost.keep, boost.cut) == ("boost", 9, 9, ())
    assert boost.until is not None
    assert boost.until >= 9 + 16
    assert len({made.tokens[i : i + 4] for i in range(boost.until - 19, boost.until - 3)}) == 16
    # After it, temperature 0: the best token, the lowest on ties. The next loop begins where the boost has ended.
    assert made.text[boost.until :] == "a" * 9
    assert (stop.name, stop.found) == ("stop", Loop(boost.until, 1, 9))
    assert written(script, "boost", params, n=200, max_recoveries=1).tokens == made.tokens
    assert written(script, "boost", replace(params, seed=5), n=200, max_recoveries=1).tokens != made.tokens


def test_a_boost_that_changes_nothing_ends_the_text() -> None:
    made = written(lambda past: [90.0, *[0.0] * 15], "boost", n=2000)
    assert [action.name for action in made.actions] == ["boost", "stop"]
    assert (made.finish_reason, made.completion_tokens) == ("repetition", made.actions[0].at + 256)


THINKING = ["<think>", "</think>", "<tool_call>", "</tool_call>", *"abcdefghijkl"]


def thinking(script: Script, on_loop: Any = "close-think", **settings: Any) -> Generation:
    model = Scripted(THINKING, script, tokens_of={"<|assistant|><think>": [0], "</think>": [1], "Hi": [15]})
    prompt = settings.pop("prompt", "<|assistant|><think>")
    n = settings.pop("n", 60)
    config, hooks = asked(settings.pop("params", EARLY), max_tokens=n, on_loop=on_loop, **settings)
    return generate(model, prompt, config, **hooks)


def thinks_and_answers(past: Sequence[int]) -> list[float]:
    """abc as long as it thinks; then "def" and "a" for ever."""
    row, text = [-1.0] * 16, past[1:]
    at = len(text) - 1 - text.index(1) if 1 in text else None
    row[4 + len(text) % 3 if at is None else 7 + at if at < 3 else 4] = 9.0
    return row


def test_close_think_ends_the_thinking_and_has_the_answer() -> None:
    made = thinking(thinks_and_answers)
    assert (made.reasoning, made.content[:3]) == ("abc", "def")
    first, last = made.actions
    assert first == ActionTaken("close-think", 9, Loop(0, 3, 3), 3, (4, 5, 6, 4, 5, 6), written=(1,))
    assert (last.name, last.found) == ("stop", Loop(7, 1, 6))  # the answer's own loop: there is no thinking to end
    assert made.tokens[:7] == (4, 5, 6, 1, 7, 8, 9)


def test_the_mark_has_the_line_breaks_of_the_template() -> None:
    assert closing("</think>", None) == "</think>"
    assert closing("</think>", "{{ '<think>' + r + '</think>' + a }}") == "</think>"
    qwen = r"{% set r = c.split('</think>')[0] %}{{ '<think>\n' + r + '\n</think>\n\n' + c }}"
    qwen += r"{{ '<think>\n\n</think>\n\n' }}"
    assert closing("</think>", qwen) == "\n</think>\n\n"


def test_the_mark_is_written_as_the_prompt_shows_it() -> None:
    shown = "<think>\na\n</think>\n{}"
    assert closing("</think>", "{{ '<think>' + r + '</think>' + a }}", shown) == "\n</think>\n"
    assert closing("</think>", "{{ '\n</think>' }}", shown) == "\n</think>"  # the template comes first
    assert closing("</think>", None, "Write </think> at the end.") == "</think>"
    assert closing("</think>", None, "Not empty: <think>\n\n</think>\n\n") == "</think>"


def test_a_stop_string_that_the_written_mark_completes_ends_the_text() -> None:
    made = thinking(thinks_and_answers, stop=["c</think>"])
    assert (made.finish_reason, made.stop_string, made.text) == ("stop", "c</think>", "ab")


# -- scopes --


def test_actions_stay_in_their_scope() -> None:
    made = thinking(thinks_and_answers, "stop", loop_scope=["answer"])
    assert (made.finish_reason, made.text) == ("length", ("abc" * 20))
    closed = thinking(lambda past: thinks_and_answers([0, 1, *past[1:]]), "stop", loop_scope=["thinking"], prompt="Hi")
    assert closed.finish_reason == "length"

    def late(past: Sequence[int]) -> list[float]:
        """Thinks in a loop, ends that by itself, and loops in its answer."""
        return [9.0 if i == 1 else 0.0 for i in range(16)] if len(past) == 30 else thinks_and_answers(past)

    made = thinking(late, "stop", loop_scope=["answer"])
    assert (made.finish_reason, made.loop) == ("repetition", Loop(33, 1, 6))


def test_penalties_stay_in_their_scope() -> None:
    """The thinking is that of a penalty everywhere, the answer after it token for token that of none."""

    def script(past: Sequence[int]) -> list[float]:
        rng = random.Random(len(past) % 5 * 7919 + past[-1])
        row = [rng.choice((0.0, 0.5, 1.0, 1.5)) for _ in range(16)]
        row[0] = row[1] = row[2] = row[3] = -9.0
        if len(past) == 60:
            row[1] = 99.0
        return row

    base: dict[str, Any] = {"lz_rule": "paper", "lz_buffer": 3, "dry_allowed_length": 1, "penalty_window": 8}
    penalties: list[dict[str, Any]] = [
        {"lz_penalty": 0.4},
        {"dry_multiplier": 0.8},
        {"repetition_penalty": 1.7},
        {"frequency_penalty": 0.4, "presence_penalty": 0.3},
        {"lz_penalty": 0.4, "dry_multiplier": 0.8, "repetition_penalty": 0.3, "repetition_method": "subtractive"},
    ]
    for penalty in penalties:
        for temperature in (0.0, 0.8):
            params = Params(**{**base, **penalty, "temperature": temperature})
            plain = Params(temperature=temperature)
            everywhere = thinking(script, "off", params=params, n=160)
            scoped = thinking(script, "off", params=params, n=160, penalty_scope=["thinking"])
            n = scoped.tokens.index(1) + 1
            assert scoped.tokens[:n] == everywhere.tokens[:n]
            assert scoped.tokens[:n] != thinking(script, "off", params=plain, n=160).tokens[:n]
            assert scoped.tokens[n:] != everywhere.tokens[n:]

            def forced(past: Sequence[int], own: Sequence[int] = scoped.tokens[:n]) -> list[float]:
                return [99.0 * (i == own[len(past) - 1]) for i in range(16)] if len(past) <= len(own) else script(past)

            assert thinking(forced, "off", params=plain, n=160).tokens == scoped.tokens


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: str(penalty.name))
def test_every_penalty_can_be_without_effect(penalty: Penalty) -> None:
    """A new one, too: it would stay on in the parts of a text that it is not for."""
    params = Params(**{penalty.strength: 2.0})  # type: ignore[arg-type]
    silent = unpriced(params)
    assert penalty.is_on(params)
    sampler = Sampler(50, params)
    for token in [1, 2, 3, 4] * 40:
        sampler.accept(token)
    logits = np.linspace(-2, 2, 50).astype(np.float32)
    priced = sampler.process(logits, np.empty(50, np.float32)).tolist()
    sampler.set_params(silent)
    assert sampler.process(logits, np.empty(50, np.float32)).tolist() == logits.tolist() != priced


def test_settings_without_effect_change_no_logit() -> None:
    params = Params(
        temperature=1.0, lz_rule="paper", lz_penalty=0.15, lz_buffer=2, dry_multiplier=0.8, dry_base=3.0,
        repetition_penalty=1.3, frequency_penalty=0.2, presence_penalty=0.1,
    )  # fmt: skip
    sampler, plain = Sampler(50, params), Sampler(50, Params(temperature=1.0))
    rng = np.random.default_rng(1)
    for token in (rng.integers(0, 9, 200) % 5).tolist():
        sampler.accept(token)
        plain.accept(token)
    logits = rng.normal(size=50).astype(np.float32)
    sampler.set_params(unpriced(params))
    assert (
        sampler.process(logits, np.empty(50, np.float32)).tolist()
        == plain.process(logits, np.empty(50, np.float32)).tolist()
    )
    sampler.set_params(params)
    assert (
        sampler.process(logits, np.empty(50, np.float32)).tolist()
        != plain.process(logits, np.empty(50, np.float32)).tolist()
    )


@pytest.mark.parametrize(
    ("opened", "pieces", "parts"),
    [
        ("", ["a", "b"], "aa"),
        ("<think>", ["a", "</think>", "b"], "taa"),
        ("<think>", ["a", "</th", "ink", ">b"], "ttta"),
        ("", [" ", "<thi", "nk>", "a", "</think>", "<think>"], "aattaa"),
        ("", ["x", "<think>"], "aa"),
        ("", ["<tool_call>", "{", "}", "</tool_", "call>", "x"], "ooooaa"),
        ("", ["[TOOL", "_CALLS]", "[", "</tool_call>"], "aooo"),
        ("[THINK]", ["a", "[/THINK]", "[TOOL_CALLS]", "x"], "taoo"),
        ("", [b"\xe2\x97\x81think\xe2", b"\x96", b"\xb7", "a", "◁/think▷"], "aatta"),
        ("", ["<|channel|>", "analysis", "<|message|>", "x", "<|end|>", "<|start|>", "assistant"], "atttttt"),
        ("", ["<|channel|>analysis<|message|>", "x", "<|channel|>", "final", "<|message|>"], "tttaa"),
        ("", ["", "<|python_tag|>", ""], "aoo"),
    ],
)  # fmt: skip
def test_parts_of_a_text(opened: str, pieces: list[str | bytes], parts: str) -> None:
    letters = {"thinking": "t", "answer": "a", "tool": "o"}
    tracker = PartTracker(opened)
    seen = []
    for piece in pieces:
        tracker.add(piece)
        seen.append(letters[tracker.part])
    assert "".join(seen) == parts
    for n in range(len(pieces) - 1, -1, -1):  # and back again
        tracker.cut(n)
        assert letters[tracker.part] == (parts[n - 1] if n else "t" if opened else "a")
    for piece, part in zip(pieces, parts, strict=True):
        tracker.add(piece)
        assert letters[tracker.part] == part


def test_analysis_ends_with_what_gpt_oss_writes() -> None:
    tracker = PartTracker()
    tracker.add("<|channel|>analysis<|message|>hm")
    assert tracker.closing == "<|end|><|start|>assistant<|channel|>final<|message|>"
    assert PartTracker("<think>").closing == "</think>"
    assert PartTracker().closing is None


# -- what is handed out, and whole characters --


def test_what_was_handed_out_is_not_taken_back_and_comes_once() -> None:
    seen: list[str] = []
    made = written(cycle([0, 1, 2], 16), "rewind", n=40, max_recoveries=1, on_text=seen.append, stop=["bzz"])
    rewind = made.actions[0]
    assert "".join(seen) == "".join(
        LETTERS[t] for t in (*made.tokens[: rewind.keep], *rewind.cut, *made.tokens[rewind.keep :])
    )
    assert made.text == "".join(LETTERS[token] for token in made.tokens)


def test_a_place_is_moved_to_the_end_of_its_character() -> None:
    pieces = [b"a", b"\xe2", b"\x82", b"\xac", b"\xff"]
    for tokens, n, expected in (
        ([0, 1, 2, 3], 1, 1), ([0, 1, 2, 3], 2, 4), ([0, 1, 2, 3], 3, 4), ([1, 2], 1, 2), ([1, 1, 1, 1, 1], 1, 4),
        ([4, 4], 1, 1),
    ):  # fmt: skip
        assert whole_character(tokens, n, pieces.__getitem__) == expected


@pytest.mark.parametrize(
    ("pieces", "n", "reach", "places"),
    [
        ("x|-| a| b|\n|-| a| b|\n|-", 3, 4, (5, 6)),  # a line: before its mark, and at its first word
        ("a|\n|-| b", 2, 4, (2, 3)),  # it begins at once
        ("a|\n|1|.| b|\n|2|.| b", 4, 5, (2, 4)),  # a number is no word, even where it looks like a sentence's end
        ("a| b|.| c| d|.| c", 3, 3, (3, 3)),
        ("a| b|.| c| d|!| e|\n| f", 4, 5, (8, 8)),  # a line comes before a sentence
        ("a| b|.| c| d|!| e|\n| f", 4, 4, (6, 6)),
        ("a| b|.*)|  |  c| d", 2, 4, (3, 4)),
        ("a| b| c", 1, 2, (1, 1)),  # neither
        ("a|\n|-", 1, 9, (1, 1)),  # no word
        ("\n|a|\n|a", 0, 1, (0, 0)),
    ],
)  # fmt: skip
def test_where_a_text_can_go_elsewhere(pieces: str, n: int, reach: int, places: tuple[int, int]) -> None:
    texts = [piece.encode() for piece in pieces.split("|")]
    assert fresh_start(range(len(texts)), n, reach, texts.__getitem__) == places


def test_a_rewind_is_to_the_first_word_of_a_line_and_thinking_ends_with_a_line() -> None:
    pieces = ["x", "\n", "-", " a", " b", " c", "</think>", "y", " d", "."]
    lines = [0, 1, *[2, 3, 4, 1] * 20]  # x, and then "- a b" in every line

    def script(past: Sequence[int]) -> list[float]:
        text = past[1:]
        row = [0.0] * 10
        row[7 if 6 in text else lines[len(text)]] = 9.0
        row[5] = 5.0
        return row

    params = replace(EARLY, repetition_detection=RepetitionDetection(8, 4, 3))
    model = Scripted(pieces, script)
    rewound = generate(
        model,
        np.array([9], np.int32),
        GenerationConfig(params, max_tokens=20, on_loop=LoopPolicy(action="rewind", max_recoveries=1)),
    )
    first = rewound.actions[0]
    assert (first.found, first.keep, first.forbidden) == (Loop(1, 4, 3), 7, (3,))
    assert rewound.text.startswith("x\n- a b\n- c")
    model = Scripted(pieces, script, tokens_of={"<think>": [9], "</think>": [6]})
    closed = generate(model, "<think>", GenerationConfig(params, max_tokens=20, on_loop="close-think"))
    assert closed.actions[0].keep == 6
    assert closed.text.startswith("x\n- a b\n</think>y")


def test_a_recurrent_model_decodes_it_all_again() -> None:
    script = cycle([0, 1, 2], 16)
    usual = written(script, "rewind", n=40)
    model = Scripted(LETTERS, script, recurrent=True)
    assert generate(model, PROMPT, GenerationConfig(EARLY, max_tokens=40, on_loop="rewind")).tokens == usual.tokens
    assert model.past == [15, *usual.tokens[:-1]]


# -- settings --


def test_a_rule_brings_its_detector() -> None:
    plain, own = Params(), Params(repetition_detection=RepetitionDetection(4, 1, 9), stuck_detection=StuckDetection(99))
    for policy, params, expected in (
        (LoopPolicy(), plain, ("off", "period", None, None)),
        (LoopPolicy("stop"), plain, ("stop", "period", STOP_ON_LOOP, None)),
        (LoopPolicy("boost", "stuck"), plain, ("boost", "stuck", None, STOP_ON_STUCK)),
        (LoopPolicy("rewind", "both"), plain, ("rewind", "both", STOP_ON_LOOP, STOP_ON_STUCK)),
        (LoopPolicy(), own, ("stop", "both", own.repetition_detection, own.stuck_detection)),
        (LoopPolicy("trim", "period"), own, ("trim", "period", own.repetition_detection, None)),
        (LoopPolicy("off"), own, ("off", "both", None, None)),
    ):
        settled, params = policy.settled(params)
        assert (settled.action, settled.rule, params.repetition_detection, params.stuck_detection) == expected
        assert settled.settled(params)[0].action == settled.action
    assert LoopPolicy(loop_scope=["tool", "thinking"]).loop_scope == ("thinking", "tool")
    assert LoopPolicy().penalty_scope == PARTS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"on_loop": "halt"}, "on_loop must be one of off, stop, trim, rewind, close-think, boost, got 'halt'"),
        ({"loop_rule": "all"}, "loop_rule must be one of period, stuck, both, got 'all'"),
        ({"max_recoveries": -1}, "max_recoveries must be from 0 to 1000, got -1"),
        ({"loop_scope": ["thinking", "tools"]}, "loop_scope must be some of thinking, answer, tool, got 'tools'"),
        ({"penalty_scope": []}, "penalty_scope must have a part: thinking, answer, tool"),
    ],
)
def test_bad_settings(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        LoopPolicy.from_json(settings)


def test_the_second_rule_finds_what_has_no_period() -> None:
    def script(past: Sequence[int]) -> list[float]:
        """abcd, efgh and so on in an order that is not a period, after ten letters of its own."""
        at = len(past) - 1
        word = random.Random(at // 4).choice((0, 4))
        return [9.0 * (i == (8 + at % 8 if at < 8 else word + at % 4)) for i in range(16)]

    params = Params(temperature=0.0, stuck_detection=StuckDetection(threshold=24, ngram_size=4, min_count=3))
    made = written(script, "stop", params, n=300)
    assert made.finish_reason == "repetition"
    assert made.loop is None
    assert made.stuck is not None
    assert made.stuck.end == len(made.tokens)
    start, tokens = made.stuck.start, list(made.tokens)
    *_, second = [i for i in range(start) if tokens[i : i + 4] == tokens[start : start + 4]]
    assert 0 < second < start
    assert written(script, "trim", params, n=300).tokens == made.tokens[:second]
    rewound = written(script, "rewind", params, n=300, max_recoveries=2)
    assert rewound.actions[0].keep == second
    assert rewound.actions[0].forbidden == (made.tokens[second],)


# -- nothing goes on for ever --

PIECES = ["a", "b", "\n", "</think>", b"\xc3", b"\xa9", ".", "<tool_call>", "</tool_call>", None]


def adversary(rng: random.Random, n_vocab: int) -> Script:
    """A model that wants to loop whatever is forbidden: it knows all that came before, and changes its pattern."""
    kind = rng.randrange(6)
    pattern = [rng.randrange(n_vocab) for _ in range(rng.randint(1, 6))]
    possible = rng.randint(1, n_vocab)
    salt = rng.randrange(1 << 30)

    def script(past: Sequence[int]) -> list[float]:
        n = len(past)
        if kind == 0:  # a pattern by position
            best = pattern[n % len(pattern)]
        elif kind == 1:  # whatever came a period ago
            best = past[-len(pattern)] if n > len(pattern) else pattern[0]
        elif kind == 2:  # the longest match of the end goes on
            last = past[-1]
            best = next((past[i + 1] for i in range(n - 2, max(-1, n - 40), -1) if past[i] == last), pattern[0])
        elif kind == 3:  # a table of its own, by the last two tokens
            best = (past[-1] * 31 + past[n - 2] * 17 + salt) % n_vocab
        elif kind == 4:  # a pattern that changes when the text has been cut before
            best = pattern[(n * (salt % 5 + 1)) % len(pattern)]
        else:  # none is better
            best = -1
        row = [4.0 + 0.01 * ((token * salt) % 7) if token < possible else -np.inf for token in range(n_vocab)]
        if 0 <= best < possible:
            row[best] = 4.0 + (30.0 if salt % 2 else 2.0)
        return row

    return script


def check_a_run(seed: int, *, twice: bool) -> tuple[str, ...]:
    rng = random.Random(seed)
    n_vocab = rng.randint(2, len(PIECES))
    max_tokens, most = rng.choice((1, 7, 30, 50)), rng.randint(0, 4)
    smallest, count = rng.randint(1, 3), rng.randint(2, 4)
    params = Params(
        temperature=rng.choice((0.0, 0.0, 0.7, 6.0)),
        lz_penalty=rng.choice((0.0, 0.3)),
        lz_window=64,
        lz_rule="paper",
        lz_buffer=4,
        seed=seed,
        repetition_detection=RepetitionDetection(rng.randint(smallest, 8), smallest, count),
        stuck_detection=StuckDetection(rng.randint(3, 20), 2, 2, 1, 40),
    )
    scopes: tuple[tuple[Part, ...] | None, ...] = (None, ("thinking",), ("answer", "tool"))
    policy = LoopPolicy(
        rng.choice(("stop", "trim", "rewind", "rewind", "close-think", "boost", "boost")),
        rng.choice(("period", "stuck", "both")),
        most,
        rng.choice(scopes),
        rng.choice(scopes),
    )
    script = adversary(rng, n_vocab)
    prompt = rng.choice(("<think>", "Hi"))
    tokens_of = {"<think>": [0, 1], "Hi": [0], "</think>": [3 % n_vocab, 0][: rng.randint(1, 2)]}
    n_ctx = rng.choice((1 << 20, max_tokens // 2 + 4))
    runs = []
    for _ in range(1 + twice):
        model = Scripted(PIECES[:n_vocab], script, n_ctx=n_ctx, tokens_of=tokens_of, recurrent=bool(seed & 1))
        model.eog_tokens = ()
        text = Text(model, prompt, GenerationConfig(params, max_tokens=max_tokens, on_loop=policy))
        model.decode(text.prompt)
        token = text.take(model.logits_pointer(), model.n_past < n_ctx)
        while token is not None:
            if text.behind is None:
                assert model.past == [*text.prompt, *text.tokens[:-1]]  # the cache is the text
                assert isinstance(text.sampler, Sampler)
                assert text.sampler.position == len(text.tokens)
            token = text.follow(token)
            assert model.picks <= (most + 2) * max_tokens
        made = text.generation()
        runs.append((made.tokens, made.text, made.finish_reason, made.actions, made.loop, made.stuck))
    assert len(set(map(repr, runs))) == 1  # the same seed, the same text
    assert len(made.tokens) <= max_tokens
    assert made.text == b"".join(map(model.piece, made.tokens)).decode("utf-8", "replace")
    picked = made.completion_tokens - sum(len(action.written) for action in made.actions)
    ended = made.finish_reason == "stop" or "stop" in [a.name for a in made.actions if a.keep == a.at]
    assert model.picks - ended <= picked <= model.picks
    names = tuple(action.name for action in made.actions)
    assert sum(name in ("rewind", "boost") for name in names) <= most
    assert names.count("close-think") <= 1
    assert (made.finish_reason == "repetition") == (names[-1:] in (("stop",), ("trim",)))
    at = 0
    for action in made.actions:
        assert at <= action.keep + len(action.cut) == action.at <= max_tokens
        at = action.keep
    return names


def test_no_action_goes_on_for_ever() -> None:
    seen: dict[str, int] = {}
    for seed in range(10_000):
        for name in check_a_run(seed, twice=seed % 4 == 0):
            seen[name] = seen.get(name, 0) + 1
    assert min(seen[name] for name in ("stop", "trim", "rewind", "close-think", "boost")) > 100
