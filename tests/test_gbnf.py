"""GBNF, llama.cpp's grammars: what they allow, rewinds and clones, greedy picks without a mask, errors in one line."""

import random
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from lzsampler import Grammar, LzsError, Params, Sampler, TokenBytes
from lzsampler.constraint.automaton import automaton_of
from lzsampler.constraint.grammar import EngineGrammar

pytest.importorskip("llama_cpp")

from llama_cpp import llama_grammar

from lzsampler import Model, generate
from lzsampler.decoding.config import GenerationConfig
from lzsampler.decoding.draft import Draft
from lzsampler.decoding.many import Request, generate_many
from lzsampler.llama.gbnf import GbnfMatcher
from lzsampler.llama.gbnf_rules import check
from lzsampler.llama.vocabulary import Vocabulary
from lzsampler.models import default_model
from walks import allowed, check_rewinds
from writings import texts_by_id

NESTED = 'root ::= pair+\npair ::= "(" pair* ")" | "ab"'  # no regular expression has these texts
RECORD = r'root ::= "{\"name\": \"" [a-zA-Z]{1,12} "\", \"age\": " [0-9]{1,3} "}"'
RECORD_AS_REGEX = r'\{"name": "[a-zA-Z]{1,12}", "age": [0-9]{1,3}\}'
PAIRS = [
    (RECORD, RECORD_AS_REGEX),
    ('root ::= ("yes" | "no") (", " ("yes" | "no"))* [.!]', r"(yes|no)(, (yes|no))*[.!]"),
    ("root ::= [A-Z0-9 _-]{0,9}", "[A-Z0-9 _-]{0,9}"),
    ('root ::= "grün" | "blau" | "é"*', "grün|blau|é*"),
]


@pytest.fixture(scope="module")
def vocabulary() -> Iterator[Vocabulary]:
    opened = Vocabulary(default_model())
    yield opened
    opened.close()


def sampler_of(grammar: Grammar, **settings: Any) -> Sampler:
    made = Sampler(grammar.vocabulary.n_vocab, Params(**settings))
    made.set_grammar(grammar)
    return made


def steps(sampler: Sampler, row: npt.NDArray[np.float32], n: int) -> None:
    for _ in range(n):
        sampler.accept(sampler.sample(row))


@pytest.mark.parametrize(("gbnf", "regex"), PAIRS)
def test_masks_are_those_of_the_same_regular_expression(vocabulary: Vocabulary, gbnf: str, regex: str) -> None:
    theirs, ours = Grammar.gbnf(gbnf, vocabulary), Grammar.regex(regex, vocabulary)
    ends = set(vocabulary.token_bytes.end)
    for seed in range(6):
        rng = random.Random(seed)
        one, other = sampler_of(theirs), sampler_of(ours)
        text = b""
        for _ in range(30):
            choices = allowed(one)
            assert choices == allowed(other), text
            token = rng.choice(choices)
            one.accept(token)
            other.accept(token)
            if token in ends:
                break
            text += vocabulary.token_bytes.pieces[token]
            assert theirs.match(text) == ours.match(text) != "no"


def test_rewinds_and_clones_are_where_a_new_sampler_would_be(vocabulary: Vocabulary) -> None:
    check_rewinds(Grammar.gbnf(NESTED, vocabulary), 60, 4)


def test_a_greedy_pick_is_that_of_the_mask_and_makes_none_where_it_is_allowed(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[bool] = []
    mask = GbnfMatcher.mask

    def counted(self: GbnfMatcher) -> npt.NDArray[np.uint32]:
        made.append(True)
        return mask(self)

    monkeypatch.setattr(GbnfMatcher, "mask", counted)
    rng = np.random.default_rng(5)
    picks = sampler_of(Grammar.gbnf(RECORD, vocabulary), temperature=0.0, presence_penalty=0.5)
    masks = sampler_of(
        Grammar.regex(RECORD_AS_REGEX, vocabulary), temperature=0.0, presence_penalty=0.5, structure="off"
    )
    refused = 0
    for step in range(400):
        row = rng.normal(0, 1, vocabulary.n_vocab).astype(np.float32)
        right = masks.sample(row)
        if step % 2:
            row[right] += 9
        made.clear()
        token = picks.sample(row)
        assert token == right
        assert not (made and step % 2)
        refused += len(made)
        if token in vocabulary.token_bytes.end:
            picks.reset()
            masks.reset()
            continue
        picks.accept(token)
        masks.accept(token)
    assert refused > 100
    drawn = sampler_of(Grammar.gbnf(RECORD, vocabulary), temperature=1.0, seed=1)
    made.clear()
    drawn.sample(np.zeros(vocabulary.n_vocab, np.float32))
    assert made  # draws are among the tokens that are allowed


def test_a_model_writes_under_it_alone_in_company_and_with_a_draft() -> None:
    prompts = ["Who is it? ", "A king: ", "x"]
    with Model(default_model()) as model:
        grammar = Grammar.gbnf(RECORD, model)
        params = Params.recommended(model, temperature=0.0)
        texts = [
            generate(model, prompt, GenerationConfig(params, max_tokens=60, grammar=grammar)).text for prompt in prompts
        ]
        drafted = generate(
            model, prompts[0], GenerationConfig(params, max_tokens=60, grammar=grammar, draft=Draft(lookup=2))
        ).text
        requests = [
            Request(prompt, prompt, GenerationConfig(params, max_tokens=60, grammar=grammar)) for prompt in prompts
        ]
        together = {prompt: made.text for prompt, made in texts_by_id(generate_many(model, requests)).items()}
        warm = generate(
            model,
            prompts[0],
            GenerationConfig(Params.recommended(model, temperature=0.9, seed=3), max_tokens=60, grammar=grammar),
        )
    assert drafted == texts[0]
    assert [together[prompt] for prompt in prompts] == texts
    for text in (*texts, warm.text):
        assert re.fullmatch(RECORD_AS_REGEX, text)
        assert grammar.match(text) == "yes"  # also after the model was closed
    assert grammar.copy().match("{") == "beginning"


def test_ctrl_c_within_a_mask_or_a_token_is_raised_and_the_grammar_can_be_used_again(
    vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = np.zeros(vocabulary.n_vocab, np.float32)
    for name in ("mask", "allows", "take"):
        grammar = Grammar.gbnf(RECORD, vocabulary)
        sampler = sampler_of(grammar, temperature=1.0, seed=3)
        steps(sampler, row, 5)
        place = sampler.clone()
        right = place.sample(row)
        asked = getattr(GbnfMatcher, name)

        def interrupted(self: GbnfMatcher, *args: Any, asked: Any = asked) -> Any:
            asked(self, *args)
            raise KeyboardInterrupt

        with monkeypatch.context() as patched:
            patched.setattr(GbnfMatcher, name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                steps(sampler, row, 3)
        assert place.sample(row) == right
        place.accept(right)
        place.sample(row)


def test_what_cannot_begin_with_itself_is_taken(vocabulary: Vocabulary) -> None:
    grammars = {name: text for name, text in vars(llama_grammar).items() if name.endswith("_GBNF")}
    assert len(grammars) >= 7
    grammars["behind characters"] = 'root ::= "((" root | [)(]{1,} "b" # ( root'
    grammars["no times"] = 'root ::= root{0} "a"'
    grammars["a comment in a count"] = 'root ::= ("a"{ # two\n2} root | "b")'
    grammars["all but surrogates"] = r"root ::= [^\uD800-\uDFFF] [a-] [\]-] [\uD000-\uE000] [z-\U99999999]"
    grammars["many rules"] = "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1}\n" for i in range(2000)) + 'r2000 ::= "a"'
    for name, text in grammars.items():
        check(text)
        assert Grammar.gbnf(text, vocabulary).match("") != "no", name
    empty = Grammar.gbnf('root ::= (x)* "b"\nx ::= "a"*', vocabulary)
    assert [empty.match(text) for text in ("aab", "aa", "b", "c")] == ["yes", "beginning", "yes", "no"]


def test_what_it_refuses_is_said_in_one_line(vocabulary: Vocabulary, capfd: pytest.CaptureFixture[str]) -> None:
    cases = [
        ('root ::= "a', "text must be GBNF that llama.cpp can use: "),
        ("root ::= other", "text must be GBNF that llama.cpp can use: .*other"),
        ('other ::= "a"', "text must be GBNF that llama.cpp can use: .*root"),
        ('root ::= root "a"', "text must be GBNF without left recursion, but root can begin with itself: root > root"),
        ('root ::= ws root "a" | "b"\nws ::= " "*', "but root can begin with itself"),
        ('root ::= (e) root "a" | "b"\ne ::= ()', "but root can begin with itself"),
        (
            'root ::= a\na ::= "x"{0,3} ("y" | (b))\nb ::= [^a"]? a "c"',
            "but [ab] can begin with itself: (a > b > a|b > a > b)",
        ),
        ('root ::= ([] ws root | "b")\nws ::= " "*', "but root can begin with itself"),
        ('root ::= (ws{ # }\n1} root "a" | "b")\nws ::= " "*', "but root can begin with itself"),
        ('root ::= # \r"a"{3,1}', r"text must be GBNF, but the count \{3,1\} has a maximum below its minimum"),
        ('root ::= "a" !<[5]>', r"text must be GBNF of characters, but !<\[5\]> is a token"),
        ('root ::= "' + "a" * 1000 + '"{1001}', "counts that repeat at most 1,000,000 characters, got 1,003,002"),
        (
            'root ::= "x"\n' + "".join(f'a{i} ::= a{i + 1} "x" | a{i + 1}\n' for i in range(40)) + 'a40 ::= "z"',
            "text must be GBNF whose rules begin in at most 20,000,000 ways, but these begin in more ways",
        ),
        ('root ::= "a"{' + "1" * 5000 + ",2}", "text must be GBNF that llama.cpp can use: "),
        ("[" * 65000, "text must be GBNF, but it has no rule"),
        ('root ::= "' + '\\"' * 30000 + "\\", "text must be GBNF that llama.cpp can use: "),
        ("", "text must be GBNF, but it has no rule"),
        (' # "a"\n', "text must be GBNF, but it has no rule"),
        ('root ::= "a"{3,1}', r"text must be GBNF, but the count \{3,1\} has a maximum below its minimum"),
        (r'root ::= "a" | "\U99999999"', r'text must be GBNF of characters, but no text can contain "\\U99999999"'),
        (r'root ::= "\uD83D\uDE00"', "text must be GBNF of characters, but no text can contain "),
        (r"root ::= [\U00110000-\U99999999\uD800]", r"of characters, but no text can contain \[\\U00110000"),
        ("root ::= [b-a]", r"of characters, but no text can contain \[b-a\]"),
        (r"root ::= [^\U00001000-\U0010FFFF\x00-\x61b-\u2000]", r"of characters, but no text can contain \[\^"),
        ("root ::= \0", "text must be GBNF, but it has a NUL character"),
        ('root ::= "\ud800"', "text must be valid Unicode: there is a lone surrogate at 10"),
        ("root ::= " + "(" * 251 + '"a"' + ")" * 251, "text must have groups nested at most 250 deep, got 251"),
        ("root ::= " + '"a" ' * 20_000, "text must have at most 65,536 bytes, got 80,009"),
    ]
    for text, message in cases:
        with pytest.raises(ValueError, match=message) as error:
            Grammar.gbnf(text, vocabulary)
        assert "\n" not in str(error.value)
    assert capfd.readouterr().err == ""
    with pytest.raises(TypeError, match="text must be a str, got 7"):
        Grammar.gbnf(7, vocabulary)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"vocabulary must be a Model, whose llama\.cpp reads GBNF"):
        Grammar.gbnf(NESTED, TokenBytes([b"", b"a"], end=[0]))
    grammar = Grammar.gbnf(NESTED, vocabulary)
    assert isinstance(grammar, EngineGrammar)
    with pytest.raises(ValueError, match="GBNF and llguidance have no automaton"):
        automaton_of(grammar)
    with pytest.raises(ValueError, match=r"a grammar of llama\.cpp cannot share masks"):
        grammar.use_part_masks(vocabulary.token_bytes.part_masks)


def test_a_token_against_the_grammar_leaves_nothing_until_it_is_taken_back(vocabulary: Vocabulary) -> None:
    sampler = sampler_of(Grammar.gbnf('root ::= "yes"', vocabulary), temperature=0.0)
    before = allowed(sampler)
    for token in (vocabulary.token_bytes.end[0], vocabulary.token_bytes.pieces.index(b"x")):
        sampler.accept(token)
        assert allowed(sampler) == []
        with pytest.raises(LzsError, match="no token is allowed"):
            sampler.sample(np.zeros(vocabulary.n_vocab, np.float32))
        sampler.rewind(1)
        assert allowed(sampler) == before


@pytest.mark.parametrize(
    "text",
    [
        "root ::= r0\n" + "".join(f"r{i}::=r{i + 1}\n" for i in range(4800)) + 'r4800::="a"',
        "root ::= " + "(" * 250 + '"a"' + ")*" * 250,
        'root ::= (("a"{0,900}){0,900}){0,900}',
        'root ::= "' + "\\" * 3,
        'root ::= [a-"',
    ],
)
def test_hostile_grammars_do_not_end_the_process(text: str) -> None:
    code = f"""
from lzsampler import Grammar
from lzsampler.llama.vocabulary import Vocabulary
from lzsampler.models import default_model
try:
    print(Grammar.gbnf({text!r}, Vocabulary(default_model())).match("a"))
except ValueError as error:
    print("no:", error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-500:]
    assert done.stdout.splitlines()[0].startswith(("yes", "no:"))


def lzs(*arguments: object, cwd: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "lzsampler", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, stdin=subprocess.DEVNULL)


def test_the_command_line_takes_one_and_a_file(tmp_path: Path) -> None:
    (tmp_path / "record.gbnf").write_text(RECORD + "\n", encoding="utf-8-sig")
    saved = tmp_path / "made.jsonl"
    made = lzs("generate", "--grammar-file", "record.gbnf", "-n", 60, "--save", saved, "Who is it? ", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert re.fullmatch(RECORD_AS_REGEX + "\n", made.stdout)
    assert '"gbnf": ' in saved.read_text(encoding="utf-8")
    assert '"grammar_match": "yes"' in saved.read_text(encoding="utf-8")
    checked = lzs("grammar", "check", "--grammar", NESTED, "(ab)", "(ab", "b", cwd=tmp_path)
    assert [line.split()[0] for line in checked.stdout.splitlines()] == ["yes", "beginning", "no"]
    for arguments, message in [
        (("--grammar", 'root ::= "a'), "--grammar must be GBNF that llama.cpp can use: "),
        (("--grammar-file", "missing.gbnf"), "missing.gbnf: No such file or directory"),
        (("--grammar", NESTED, "--regex", "a"), "--regex and --grammar exclude each other"),
        (("--grammar", NESTED, "--tokenization", "proper"), "--tokenization is for lzsampler's own grammars"),
        (("--grammar-file", "record.gbnf", "--save", "record.gbnf"), "record.gbnf"),
        (("--grammar", NESTED, "--ignore-eos"), "--ignore-eos forbids the tokens that end a text"),
    ]:
        wrong = lzs("generate", *arguments, "x", cwd=tmp_path)
        assert wrong.returncode == 2
        assert message in wrong.stderr.splitlines()[0], wrong.stderr
    (tmp_path / "bad.gbnf").write_bytes(b"root ::= \xff")
    wrong = lzs("generate", "--grammar-file", "bad.gbnf", "x", cwd=tmp_path)
    assert wrong.stderr.startswith("lzs: bad.gbnf is not UTF-8 text (byte 9): convert it first\n")
