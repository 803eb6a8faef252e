"""`attach` and `LZLlama`: applications of llama-cpp-python with our penalties."""

import ast
import copy
import ctypes
import dataclasses
import inspect
import itertools
import math
import pickle
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest

from lzsampler import Params, Sampler
from lzsampler.auditing.repetition import repetition
from lzsampler.models import default_model
from lzsampler.params import PRESETS, CallSettings

llama_cpp = pytest.importorskip("llama_cpp")

from applications import CHAT, LOOPING, LZ, PROMPT, by_chain, default, new, run_python, streamed, text_of  # noqa: E402 (needs llama_cpp)
from lzsampler import llama  # noqa: E402
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.dropin import LZLlama, attach  # noqa: E402
from lzsampler.dropin import attachment as dropin  # noqa: E402
from lzsampler.dropin.settings import OURS  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402

# ---- applications, as the README of llama-cpp-python has them ----


def completion(llm: Any, n: int = 50, **settings: Any) -> str:
    return text_of(llm(LOOPING, max_tokens=n, stop=["Q:"], echo=True, **settings)).removeprefix(LOOPING)


def completion_stream(llm: Any, n: int = 50, **settings: Any) -> str:
    return streamed(llm.create_completion(LOOPING, max_tokens=n, stream=True, **settings))


def chat(llm: Any, n: int = 50, **settings: Any) -> str:
    return text_of(llm.create_chat_completion(messages=CHAT, max_tokens=n, **settings))


def chat_stream(llm: Any, n: int = 50, **settings: Any) -> str:
    return streamed(llm.create_chat_completion(messages=CHAT, max_tokens=n, stream=True, **settings))


def tokens(llm: Any, n: int = 50, **settings: Any) -> str:
    if "temperature" in settings:
        settings["temp"] = settings.pop("temperature")
    llm.set_seed(settings.pop("seed", 1))
    made = llm.generate(llm.tokenize(LOOPING.encode()), **settings)
    return str(llm.detokenize(list(itertools.islice(made, n))).decode("utf-8", "replace"))


APPLICATIONS = [completion, completion_stream, chat, chat_stream, tokens]
SETTINGS: list[dict[str, Any]] = [
    {"temperature": 0.0},
    {"temperature": 0.8, "seed": 7},
    {"temperature": 1.1, "seed": 7, "top_k": 0, "top_p": 0.9, "min_p": 0.0},
    {"temperature": 0.9, "seed": 3, "repeat_penalty": 1.2, "frequency_penalty": 0.1, "presence_penalty": 0.3},
    {"temperature": 0.7, "seed": 3, "mirostat_mode": 2},
]


@pytest.mark.parametrize("application", APPLICATIONS)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_with_penalties_off_nothing_changes(llm: Any, application: Any, settings: dict[str, Any]) -> None:
    untouched = application(llm, **settings)
    llm.reset()
    with attach(llm, Params()):
        assert application(llm, **settings) == untouched
    llm.reset()
    assert type(llm) is llama_cpp.Llama
    assert application(llm, **settings) == untouched  # and given back as it was


@pytest.mark.parametrize(
    "prompt",
    [
        "Most of the characters that perform in this book still live, and",
        "This is the end of the adventures of Buster Bear",
        "Still Sunday said nothing, but only",
        "The evening came, the drawing-rooms were lighted up, the company assembled. It was",
    ],
)
def test_loops_of_other_prompts_are_gone(llm: Any, prompt: str) -> None:
    settings = {"max_tokens": 250, "temperature": 0.0}
    assert repetition(text_of(llm(prompt, **settings))).loops
    with attach(llm):
        assert not repetition(text_of(llm(prompt, **settings))).loops


@pytest.mark.parametrize("application", [completion, completion_stream, tokens])
def test_the_loop_is_gone(llm: Any, application: Any) -> None:
    assert repetition(application(llm, 200, temperature=0.0)).loops
    with attach(llm, LZ):
        assert not repetition(application(llm, 200, temperature=0.0)).loops


@pytest.mark.parametrize("application", APPLICATIONS)
def test_lzllama_is_attach(llm: Any, application: Any) -> None:
    with attach(llm, default(llm)):
        greedy, drawn = application(llm, 100, temperature=0.0), application(llm, temperature=0.8, seed=4)
    model = new(LZLlama)
    assert application(model, 100, temperature=0.0) == greedy
    assert application(model, temperature=0.8, seed=4) == drawn
    with attach(llm, LZ):
        paper = application(llm, 100, temperature=0.0)
    assert application(model, 100, temperature=0.0, **PRESETS["paper"]) == paper  # for that call
    without = application(model, 100, temperature=0.0, lz_penalty=0.0)
    assert without == application(llm, 100, temperature=0.0)
    assert application(model, 100, temperature=0.0) == greedy
    model.close()


@pytest.mark.parametrize(
    ("history", "chosen"),
    [
        *itertools.product(
            ["generated", "all"],
            [{"lz_rule": "paper", "lz_formula": formula} for formula in ("rate", "distance", "codelength")],
        ),
        ("generated", {"lz_run_penalty": 0.5}),
        ("all", {"lz_min_match": 3, "lz_run_penalty": 0.2, "lz_run_allowance": 4}),
    ],
    ids=str,
)
def test_four_ways_give_the_same_tokens(llm: Any, history: Any, chosen: dict[str, Any]) -> None:
    """`attach`, `LZLlama` and a chain made by hand, greedy and drawn; `generate`, which draws otherwise, greedy."""
    prompt = llm.tokenize(LOOPING.encode(), add_bos=False, special=True)
    chosen = {"lz_penalty": 0.2, "history": history, **chosen}
    penalties = Params(**chosen)
    if penalties.lz_rule == "default":  # as LZLlama has them
        sets: dict[str, Any] = dict(llama.lz_separators(llm))
        penalties = dataclasses.replace(penalties, **sets)
    for temperature in (0.0, 0.9):
        sampling: dict[str, Any] = {"top_k": 30, "top_p": 0.9, "min_p": 0.02}
        chain = [llama.penalties_sampler(primed(Sampler(llm.n_vocab(), penalties), prompt))]
        if temperature == 0.0:
            chain.append(llama_cpp.llama_sampler_init_greedy())
        else:
            chain += [
                llama_cpp.llama_sampler_init_top_k(30),
                llama_cpp.llama_sampler_init_top_p(0.9, 1),
                llama_cpp.llama_sampler_init_min_p(0.02, 1),
                llama_cpp.llama_sampler_init_temp(temperature),
                llama_cpp.llama_sampler_init_dist(11),
            ]
        by_hand = by_chain(llm, prompt, chain, 120)
        llm.reset()
        with attach(llm, penalties):
            llm.set_seed(11)
            assert list(itertools.islice(llm.generate(prompt, temp=temperature, **sampling), 120)) == by_hand
        model = new(LZLlama, **chosen)
        got = text_of(model(LOOPING, max_tokens=120, temperature=temperature, seed=11, **sampling))
        assert got == model.detokenize(by_hand, prev_tokens=prompt).decode("utf-8", "ignore")
        model.close()
        if temperature > 0:
            continue
        ours = dataclasses.replace(penalties, temperature=0.0)
        with Model(default_model(), n_ctx=512, n_threads=1, flash_attn=False) as model:  # as in the Llama
            assert list(generate(model, LOOPING, GenerationConfig(ours, max_tokens=120)).tokens) == by_hand


def primed(sampler: Sampler, prompt: list[int]) -> Sampler:
    sampler.prime(prompt)
    return sampler


# ---- settings ----


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            Params(temperature=0.5),
            r"^temperature=0.5 cannot be set here, because llama-cpp-python samples; "
            r"pass it to the call, as in llm\(prompt, temperature=0.5\)$",
        ),
        (Params(top_k=5), "^top_k=5 cannot be set here"),
        (Params(seed=1), "^seed=1 cannot be set here"),
        (
            Params(lz_penalty=0.1, exempt=(10**6,)),
            "exempt must be tokens below 4096, the size of the vocabulary, got 1000000",
        ),
        (Params(logit_bias={4096: 1.0}), "logit_bias must be tokens below 4096"),
        (Params(dry_multiplier=1.0, dry_breakers=(4096,)), "dry_breakers must be tokens below 4096"),
        ({"lz_penalty": 1}, "params must be a Params, got"),
    ],
)
def test_params_that_are_not_for_here(llm: Any, params: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        attach(llm, params)
    assert type(llm) is llama_cpp.Llama


# ---- one rule for attach, LZLlama and the calls ----


def test_a_window_for_one_call_has_a_buffer_that_fits(llm: Any) -> None:
    with attach(llm, history="all") as handle:
        assert text_of(llm(PROMPT, max_tokens=3, lz_window=16))
        assert handle.params.lz_window == 2048


@pytest.mark.parametrize(
    ("keyword", "message"),
    [
        ("lz_penalti", "; did you mean 'lz_penalty'?"),
        ("dry_multiplyer", "; did you mean 'dry_multiplier'?"),
        ("fast_gramar", "; did you mean 'fast_grammar'?"),
        ("zzz", ""),
    ],
)
def test_a_misspelt_keyword_is_told(llm: Any, keyword: str, message: str) -> None:
    """`Llama` ignores the keywords that it does not know, and LZLlama did."""
    misspelt: dict[str, Any] = {keyword: 0.9}
    with pytest.raises(TypeError) as error:
        new(LZLlama, **misspelt)
    assert str(error.value) == f"LZLlama() got an unexpected keyword argument {keyword!r}{message}"
    with pytest.raises(TypeError) as error:
        attach(llm, **misspelt)
    assert str(error.value) == f"attach() got an unexpected keyword argument {keyword!r}{message}"
    with pytest.raises(TypeError, match=r"did you mean 'n_ctx'\?"):
        new(LZLlama, n_ctxx=5)
    with pytest.raises(ValueError, match=r"^top_k=5 cannot be set here"):
        new(LZLlama, top_k=5)


METHODS = ("__call__", "create_completion", "create_chat_completion", "generate")


def test_signatures_name_every_keyword(llm: Any) -> None:
    """They were `(*arguments, **keywords)`, which no editor can complete."""
    ours = {"lz_penalty", "lz_separators", "lz_rule", "history", "exempt", "params", "on_loop", "loop_finish_reason"}
    assert inspect.signature(attach).parameters["lz_penalty"].default == 0.3
    assert ours <= set(inspect.signature(attach).parameters)
    theirs = inspect.signature(llama_cpp.Llama).parameters
    made = inspect.signature(LZLlama).parameters
    assert set(theirs) - {"kwargs"} | ours <= set(made)
    assert [made[name].default for name in ("lz_penalty", "lz_run_penalty", "n_ctx")] == [0.3, 0.5, 512]
    for name in METHODS:
        before = inspect.signature(getattr(llama_cpp.Llama, name)).parameters
        shown = inspect.signature(getattr(LZLlama, name)).parameters
        assert {*before, *ours} <= set(shown)
        assert all(shown[parameter] == before[parameter] for parameter in before)
    with attach(llm):
        assert ours <= set(inspect.signature(llm).parameters)
        assert "for this call only" in llm.create_completion.__doc__
        assert "Generate text from a prompt" in llm.create_completion.__doc__
    for signature in (attach, LZLlama, *(getattr(LZLlama, name) for name in METHODS), LZLlama.sample):
        kinds = {parameter.kind for parameter in inspect.signature(signature).parameters.values()}
        assert not kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


@pytest.mark.skipif(llama_cpp.__version__ != "0.3.36", reason="the stub has the signatures of 0.3.36")
def test_the_stub_has_the_signatures() -> None:
    """lzllama.pyi, which editors and type checkers read."""
    tree = ast.parse(Path(dropin.__file__).with_name("lzllama.pyi").read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}

    def keywords(name: str) -> set[str]:
        own = {node.target.id for node in classes[name].body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
        bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name)]
        known = {"CallSettings": CallSettings, "AttachSettings": dropin.AttachSettings}
        return own.union(*(get_type_hints(known[base]) if base in known else keywords(base) for base in bases))

    methods = [node for node in classes["LZLlama"].body if isinstance(node, ast.FunctionDef)]
    assert [method.name for method in methods] == ["__init__", *METHODS]
    for method in methods:
        theirs = inspect.signature(getattr(llama_cpp.Llama, method.name)).parameters
        shown = [argument.arg for argument in (*method.args.args, *method.args.kwonlyargs)]
        assert shown == [name for name in theirs if name != "kwargs"]
        defaults = [node for node in (*method.args.defaults, *method.args.kw_defaults) if node is not None]
        for name, node in zip(shown[-len(defaults) :], defaults, strict=True):
            default = "auto" if (method.name, name) == ("__init__", "flash_attn") else theirs[name].default
            assert ast.unparse(node) in ("...", repr(default))
        assert method.args.kwarg is not None
        settings = ast.unparse(method.args.kwarg.annotation).removeprefix("Unpack[").removesuffix("]")  # type: ignore[arg-type]
        assert keywords(settings) == set(OURS) - set(theirs)


if TYPE_CHECKING:  # for mypy, which complains of an ignore that is not needed
    typed = LZLlama("model.gguf", n_ctx=512, lz_penalty=0.2, exempt=["a", 5], loop_finish_reason="length")
    typed("x", max_tokens=5, lz_penalty=0.1, on_loop="trim")
    typed.generate([1], temp=0.5, logit_bias={1: 1.0})
    typed("x", lz_min_match=6, lz_run_penalty=0.1, lz_separators=b"", lz_rule="default")
    attach(typed, lz_penalty=0.3, history="all").loop_finish_reason = "stop"
    attach(typed, lz_min_match=6, lz_run_allowance=64, lz_commas=b"", dry_breakers=["\n", 5])
    LZLlama("model.gguf", lz_penalti=0.2)  # type: ignore[call-arg]
    typed("x", lz_penalty="a")  # type: ignore[arg-type]
    attach(typed, history="some")  # type: ignore[arg-type]
    attach(typed, lz_penalti=0.3)  # type: ignore[call-arg]


def test_what_hosts_pass_and_llama_ignores_is_taken() -> None:
    """llama_cpp.server and LangChain give `Llama` keywords that it no longer has."""
    server = Path(llama_cpp.__file__).with_name("server") / "model.py"
    text = server.read_text(encoding="utf-8")
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    made = next(node for node in calls if isinstance(node.func, ast.Name) and node.func.id == "create_fn")
    passed = {word.arg for word in made.keywords if word.arg} | {"f16_kv", "n_parts"}
    unknown = passed - set(inspect.signature(llama_cpp.Llama).parameters)
    assert {"f16_kv", "n_parts"} <= unknown
    model = new(LZLlama, **dict.fromkeys(unknown))
    assert model.lz.params == default(model)
    model.close()


PAGE = Path(__file__).parents[1].joinpath("docs", "llama-cpp-python.md").read_text(encoding="utf-8")
SERVER, LANGCHAIN = re.findall(r"^```py\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def test_the_recipe_for_the_server() -> None:
    """Its model is ours, and what it answers is what a client of OpenAI's interface accepts."""
    compile(SERVER, "server.py", "exec")
    for package in ("fastapi", "httpx", "uvicorn", "sse_starlette", "starlette_context", "pydantic_settings"):
        pytest.importorskip(package)
    head, main = SERVER.split("from llama_cpp.server.__main__ import main")
    assert main.endswith("main()\n")
    out = run_python(
        f"""{head}
from fastapi.testclient import TestClient
from llama_cpp.server.app import create_app
from llama_cpp.server.settings import ModelSettings, ServerSettings
from lzsampler.models import default_model

model = ModelSettings(model=str(default_model()), n_ctx=512, verbose=False)
client = TestClient(create_app(server_settings=ServerSettings(), model_settings=[model]))
body = {{"prompt": {LOOPING!r}, "temperature": 0, "max_tokens": 60, "repeat_penalty": 1}}
answer = client.post("/v1/completions", json=body)
print(answer.status_code, answer.json()["choices"][0]["text"], end="")
"""
    )
    model = new(LZLlama)
    assert out == "200 " + text_of(model(LOOPING, temperature=0, max_tokens=60))
    model.close()


def test_the_recipe_for_langchain() -> None:
    compile(LANGCHAIN, "application.py", "exec")
    pytest.importorskip("langchain_community")
    assert run_python(LANGCHAIN.replace("model.gguf", str(default_model()))).strip()


def test_an_attachment_shows_what_it_does(llm: Any) -> None:
    with attach(llm, Params(), on_loop="trim") as handle:
        text_of(llm(PROMPT, max_tokens=3))
        assert repr(handle) == f"<Attachment to {llm!r}: on_loop=LoopPolicy('trim'); 1 text, 3 tokens, 0 loops>"
        handle.params = Params(lz_penalty=0.2, history="all")
        assert "lz_penalty=0.2, history='all', on_loop=LoopPolicy('trim');" in repr(handle)
        handle.params, handle.on_loop = Params(), None
        assert "all penalties off;" in repr(handle)
        handle.params = Params(dry_multiplier=1.0, dry_breakers=range(300))  # type: ignore[arg-type]
        assert "dry_multiplier=1.0, dry_breakers=(300 tokens);" in repr(handle)
        with pytest.warns(UserWarning, match="switch no penalty on"):
            handle.params = Params(history="all")
        with pytest.raises(TypeError, match="params must be a Params, got None"):
            handle.params = None  # type: ignore[assignment]


def test_attach_refuses_what_it_cannot_attach_to(llm: Any) -> None:
    with pytest.raises(TypeError, match=r"must be a llama_cpp\.Llama, got str"):
        attach("model.gguf")
    handle = attach(llm)
    assert handle.params == default(llm)
    with pytest.raises(ValueError, match="penalties already"):
        attach(llm)
    with pytest.raises(ValueError, match="temperature"):
        handle.params = Params(temperature=0.0)
    with pytest.raises(ValueError, match=r"on_loop must be the name of an action or a LoopPolicy, got 1"):
        handle.on_loop = 1  # type: ignore[assignment]
    with pytest.raises(ValueError, match="loop_finish_reason must be one of stop, length, repetition, got 'loop'"):
        handle.loop_finish_reason = "loop"  # type: ignore[assignment]
    handle.detach()
    handle.detach()
    attach(llm).detach()


def test_calls_refuse_what_they_do_not_know(llm: Any) -> None:
    with attach(llm):
        with pytest.raises(TypeError, match="lz_penatly"):
            llm(PROMPT, lz_penatly=0.1)
        with pytest.raises(ValueError, match="lz_penalty must be at least 0, got -1"):
            llm(PROMPT, lz_penalty=-1)
        with pytest.raises(ValueError, match="lz_formula must be one of"):
            llm.create_chat_completion(CHAT, lz_formula="best")
        with pytest.raises(ValueError, match="on_loop='trim' cannot take back"):
            llm(PROMPT, stream=True, on_loop="trim")
        assert text_of(llm(PROMPT, max_tokens=3))  # all is well after it
    with pytest.raises(ValueError, match="lz_window"):
        new(LZLlama, lz_window=1)
    with pytest.raises(ValueError, match="cannot be detached"):
        new(LZLlama).lz.detach()


def test_exempt_strings(llm: Any) -> None:
    model = new(LZLlama, exempt=["\n", 5])
    newline = llm.tokenize(b"\n", add_bos=False)
    assert model.lz.params.exempt == tuple(sorted({5, *newline}))
    model.close()


# ---- DRY and logit_bias ----

DRY: dict[str, Any] = {"lz_penalty": 0.0, "dry_multiplier": 0.8}


@pytest.mark.parametrize("application", APPLICATIONS)
def test_dry_is_the_same_however_it_is_given(llm: Any, application: Any) -> None:
    without = application(llm, 200, temperature=0.0)
    breakers = llama.dry_breaker_ids(llm)
    with attach(llm, Params(dry_multiplier=0.8, dry_breakers=breakers)):
        text = application(llm, 200, temperature=0.0)
        assert text != without or application in (chat, chat_stream)  # a short answer that repeats nothing
    with attach(llm, Params()):
        assert (
            application(llm, 200, temperature=0.0, dry_multiplier=0.8) == text
        )  # llama.cpp's breakers are the default
        strings = {"dry_multiplier": 0.8, "dry_breakers": ["\n", ":", *llama.dry_breaker_ids(llm, ['"', "*"])]}
        assert application(llm, 200, temperature=0.0, **strings) == text
        assert application(llm, 200, temperature=0.0) == without
    model = new(LZLlama, **DRY)
    assert model.lz.params.dry_breakers == breakers
    assert application(model, 200, temperature=0.0) == text
    model.close()


def test_dry_is_that_of_llama_cpp(llm: Any) -> None:
    prompt = llm.tokenize(LOOPING.encode(), add_bos=False, special=True)
    old = "n_ctx_train" in inspect.signature(llama_cpp._internals.LlamaSampler.add_dry).parameters
    numbers = (*((512,) if old else ()), 0.8, 1.75, 2, 512)
    breakers = (ctypes.c_char_p * 4)(b"\n", b":", b'"', b"*")
    theirs = llama_cpp.llama_sampler_init_dry(llama_cpp.llama_model_get_vocab(llm.model), *numbers, breakers, 4)
    by_hand = by_chain(llm, prompt, [theirs, llama_cpp.llama_sampler_init_greedy()], 300)
    model = new(LZLlama, **DRY)
    assert list(itertools.islice(model.generate(prompt, temp=0.0), 300)) == by_hand
    assert list(itertools.islice(model.generate(prompt, temp=0.0, dry_breakers=["e"]), 300)) != by_hand
    model.close()


def test_logit_bias_of_ours_and_that_of_a_call(llm: Any) -> None:
    prompt = llm.tokenize(PROMPT.encode())

    def first(model: Any, **settings: Any) -> list[int]:
        return list(itertools.islice(model.generate(prompt, temp=0.0, **settings), 12))

    plain = first(llm)
    forbidden = dict.fromkeys(plain, -math.inf)
    model = new(LZLlama, lz_penalty=0.0, logit_bias=forbidden)
    other = first(model)
    assert not set(other) & set(plain)
    assert first(model, logit_bias={}) == plain  # for that call
    with attach(llm, Params(logit_bias=forbidden)) as handle:
        assert first(llm) == other
        text = text_of(llm(PROMPT, max_tokens=12, temperature=0.0))
        assert text == text_of(model(PROMPT, max_tokens=12, temperature=0.0))
        wanted = next(token for token in range(llm.n_vocab()) if llm.detokenize([token]) == b" wood")
        handle.params = Params()
        their_own: dict[str, Any] = {"max_tokens": 3, "temperature": 0.0, "logit_bias": {wanted: 1000.0}}
        assert text_of(llm(PROMPT, **their_own)) == " wood wood wood"
        assert text_of(llm.create_chat_completion(CHAT, **their_own)).strip() == "wood wood wood"
        handle.params = Params(logit_bias={wanted: -math.inf})
        assert "wood" not in text_of(llm(PROMPT, **their_own))
    model.close()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"dry_multiplier": -1.0}, "dry_multiplier must be at least 0, got -1"),
        ({"dry_breakers": "ab"}, "dry_breakers must be a sequence of token ids and strings, got 'ab'"),
        ({"lz_separators": "ab"}, "lz_separators must be bytes or an array of uint32 words, got 'ab'"),
        ({"lz_separators": [5]}, r"lz_separators must be bytes or an array of uint32 words, got \[5\]"),
        (
            {"lz_separators": b"\x01\0\0\0"},
            "lz_separators must have 128 words of 4 bytes for a vocabulary of 4096, or none, got 1",
        ),
        ({"lz_commas": b"\x01"}, "lz_commas must be whole words of 4 bytes, got 1 byte"),
        ({"lz_separators": b"", "lz_rule": "paper", "lz_min_match": 4}, "lz_min_match belongs to lz_rule='default'"),
        ({"lz_formula": "rate", "lz_buffer": 4}, "lz_buffer belongs to lz_rule='paper'"),
        ({"lz_min_match": 0}, "lz_min_match must be from 1 to 2048, the lz_window, got 0"),
        ({"lz_min_match": None}, "lz_min_match must be an integer, got None"),
        ({"lz_min_match": 2049}, r"lz_min_match must be from 1 to 2048, the lz_window, got 2049"),
        ({"lz_run_penalty": math.nan}, "lz_run_penalty must be finite, got nan"),
        ({"dry_breakers": None}, "dry_breakers must be a sequence of token ids and strings, got None"),
        ({"exempt": "ab"}, "exempt must be a sequence of token ids and strings, got 'ab'"),
        ({"dry_breakers": [""]}, "non-empty strings, got ''"),
        ({"dry_breakers": [4096]}, "dry_breakers must be tokens below 4096"),
        ({"logit_bias": {"5": 1.0}}, "logit_bias takes token ids, got '5'"),
        ({"logit_bias": {4096: 1.0}}, "logit_bias must be tokens below 4096"),
    ],
)
def test_keywords_that_are_no_dry_and_no_bias(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        new(LZLlama, **keywords)


def test_settings_hold_from_the_next_text_on(llm: Any) -> None:
    with attach(llm, Params()) as handle:
        untouched = text_of(llm(LOOPING, max_tokens=100, temperature=0.0))
        handle.params = LZ
        other = text_of(llm(LOOPING, max_tokens=100, temperature=0.0))
        assert other != untouched
        handle.params = Params()
        assert text_of(llm(LOOPING, max_tokens=100, temperature=0.0)) == untouched
        assert handle.stats.calls == 3
        assert handle.stats.tokens == 300


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("kind", [LZLlama, llama_cpp.Llama])
def test_a_model_can_be_copied_and_pickled(kind: Any, copied: Any) -> None:
    """A plain Llama can; after `attach` pickle found no class, and a deep copy failed at its first call."""
    settings: dict[str, Any] = {"lz_penalty": 0.3, "history": "all", "loop_finish_reason": "length"}
    model = new(kind, **(settings if kind is LZLlama else {}))
    handle = model.lz if kind is LZLlama else attach(model, **settings)
    text = text_of(model(LOOPING, max_tokens=40, temperature=0.0))
    twin = copied(model)
    assert isinstance(twin, kind)
    assert (twin.lz.params, twin.lz.loop_finish_reason) == (handle.params, "length")
    assert twin.lz is not handle
    assert text_of(twin(LOOPING, max_tokens=40, temperature=0.0)) == text
    if kind is not LZLlama:
        for each in (model, twin):
            each.lz.detach()
            assert type(each) is llama_cpp.Llama
    for each in (model, twin):
        each.close()


def test_a_model_without_a_penalty_is_pickled_without_a_warning() -> None:
    model = new(LZLlama, lz_penalty=0.0, history="all")
    assert pickle.loads(pickle.dumps(model)).lz.params == model.lz.params
    model.close()


def test_logprobs_stop_and_criteria(llm: Any) -> None:
    model = new(logits_all=True)
    untouched = model(PROMPT, max_tokens=6, temperature=0.0, logprobs=2, stop=["zzz"])
    with attach(model, Params()):
        same = model(PROMPT, max_tokens=6, temperature=0.0, logprobs=2, stop=["zzz"])
        assert same["choices"][0]["logprobs"] == untouched["choices"][0]["logprobs"]
        three = llama_cpp.StoppingCriteriaList([lambda ids, _: len(ids) >= len(model.tokenize(PROMPT.encode())) + 3])
        cut = model(PROMPT, max_tokens=20, temperature=0.0, stopping_criteria=three)
        assert cut["choices"][0]["finish_reason"] == "stop"
        assert untouched["choices"][0]["text"].startswith(text_of(cut))
    model.close()


# ---- stop on loop ----

DETECTION = {"max_pattern_size": 64, "min_pattern_size": 4, "min_count": 3}
STOPPING = Params(repetition_detection=DETECTION)


def test_a_looping_text_ends(llm: Any) -> None:
    with attach(llm, STOPPING) as handle:
        whole = llm(LOOPING, max_tokens=300, temperature=0.0)
        loop = handle.stats.last_loop
        assert loop is not None
        assert handle.stats.loops == 1
        assert whole["choices"][0]["finish_reason"] == "stop"
        assert whole["usage"]["completion_tokens"] == loop.start + loop.period * loop.count < 300
        prompt = llm.tokenize(LOOPING.encode(), add_bos=False)
        made = list(llm.generate(prompt, temp=0.0))  # ends by itself
        assert len(made) == loop.start + loop.period * loop.count
        copies = [made[loop.start + i * loop.period :][: loop.period] for i in range(loop.count)]
        assert copies == [copies[0]] * loop.count
        assert made[loop.start - 1] != copies[0][-1]

        streamed_chunks = list(llm(LOOPING, max_tokens=300, temperature=0.0, stream=True))
        assert streamed(streamed_chunks) == text_of(whole)
        assert streamed_chunks[-1]["choices"][0]["finish_reason"] == "stop"

        cut = llm(LOOPING, max_tokens=300, temperature=0.0, on_loop="trim", echo=True)
        kept = llm.detokenize(made[: loop.start + loop.period], prev_tokens=prompt).decode()
        assert text_of(cut) == LOOPING + kept
        assert text_of(whole).startswith(kept)
        assert cut["choices"][0]["finish_reason"] == "stop"

        handle.params = LZ
        assert llm(LOOPING, max_tokens=300, temperature=0.0)["choices"][0]["finish_reason"] == "length"
        assert handle.stats.loops == 4


def test_chats_and_lzllama_say_so_too(llm: Any) -> None:
    ours = {"repetition_detection": DETECTION, "lz_penalty": 0.0, "loop_finish_reason": "repetition"}
    question = [{"role": "user", "content": LOOPING}]
    model = new(LZLlama, **ours)
    answer = model.create_chat_completion(question, temperature=0.0, max_tokens=400)
    assert answer["choices"][0]["finish_reason"] in ("repetition", "stop")
    reasons = [answer["choices"][0]["finish_reason"]]
    chunks = list(model.create_chat_completion(question, temperature=0.0, max_tokens=400, stream=True))
    reasons.append(chunks[-1]["choices"][0]["finish_reason"])
    assert reasons[0] == reasons[1]
    assert model(LOOPING, temperature=0.0, max_tokens=300)["choices"][0]["finish_reason"] == "repetition"
    off = model(LOOPING, temperature=0.0, max_tokens=300, repetition_detection=None)
    assert off["choices"][0]["finish_reason"] == "length"
    model.close()
    with attach(llm):
        assert llm(LOOPING, temperature=0.0, max_tokens=300, **ours)["choices"][0]["finish_reason"] == "repetition"


def test_the_finish_reason_is_one_of_openais_unless_asked(llm: Any) -> None:
    """Clients that check it against OpenAI's values, llama_cpp.server among them, failed at "repetition"."""
    with attach(llm, STOPPING) as handle:
        for reason in ("stop", "length", "repetition"):
            whole = llm(LOOPING, max_tokens=300, temperature=0.0, loop_finish_reason=reason)
            assert whole["choices"][0]["finish_reason"] == reason
        assert handle.stats.loops == 3
        assert llm(LOOPING, max_tokens=300, temperature=0.0)["choices"][0]["finish_reason"] == "stop"
        handle.loop_finish_reason = "repetition"
        assert llm(LOOPING, max_tokens=300, temperature=0.0)["choices"][0]["finish_reason"] == "repetition"


def test_trimmed_logprobs_fit_the_text() -> None:
    model = new(LZLlama, lz_penalty=0.0, repetition_detection=DETECTION, on_loop="trim", logits_all=True)
    cut = model(LOOPING, temperature=0.0, max_tokens=300, logprobs=1)
    loop = model.lz.stats.last_loop
    logprobs = cut["choices"][0]["logprobs"]
    assert {len(values) for values in logprobs.values()} == {loop.start + loop.period}
    assert "".join(logprobs["tokens"]).strip() == text_of(cut).strip()
    model.close()


def test_other_reasons_keep_their_name(llm: Any) -> None:
    with attach(llm, STOPPING, loop_finish_reason="repetition") as handle:
        llm(LOOPING, max_tokens=300, temperature=0.0)
        loop = handle.stats.last_loop
        assert loop is not None
        n = loop.start + loop.period * loop.count
        exactly = llm(LOOPING, max_tokens=n, temperature=0.0)
        assert exactly["choices"][0]["finish_reason"] == "length"
        never = llama_cpp.StoppingCriteriaList([lambda *_: False])
        both = llm(LOOPING, max_tokens=300, temperature=0.0, stopping_criteria=never)
        assert both["choices"][0]["finish_reason"] == "repetition"
        at_once = llama_cpp.StoppingCriteriaList([lambda *_: True])
        stopped = llm(LOOPING, max_tokens=300, temperature=0.0, stopping_criteria=at_once)
        assert stopped["choices"][0]["finish_reason"] == "stop"
