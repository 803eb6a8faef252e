"""Models that cannot take tokens back are refused by the name of their architecture, wherever a draft is given."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

llama_cpp = pytest.importorskip("llama_cpp")

import random_models  # noqa: E402 (needs llama_cpp)
from lzsampler import LzsError, Params  # noqa: E402
from lzsampler.decoding.config import GenerationConfig  # noqa: E402
from lzsampler.decoding.draft import Draft  # noqa: E402
from lzsampler.decoding.generate import generate  # noqa: E402
from lzsampler.decoding.many import Request, generate_many  # noqa: E402
from lzsampler.decoding.spec_check import spec_check  # noqa: E402
from lzsampler.dropin import attach  # noqa: E402
from lzsampler.llama.model import Model  # noqa: E402
from lzsampler.models import default_model  # noqa: E402

GREEDY = Params(temperature=0.0)


@pytest.fixture(scope="module", params=[("recurrent", "mamba"), ("hybrid", "jamba")], ids=lambda param: param[1])
def kind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Model]]:
    name, architecture = request.param
    make: Callable[[Path], Path] = getattr(random_models, architecture)
    with Model(make(tmp_path_factory.mktemp("random") / f"{architecture}.gguf"), n_threads=1) as model:
        yield name, model


def refusal(name: str, model: Model) -> str:
    architecture = model.header.architecture
    return (
        f"{model.path.name} is a {name} model \\({architecture}\\), which cannot take tokens back: leave out the draft"
    )


def test_the_file_is_what_it_says(kind: tuple[str, Model]) -> None:
    """It writes texts, and llama.cpp cannot go back part of the way in them."""
    name, model = kind
    assert getattr(llama_cpp, f"llama_model_is_{name}")(model.llm.model)
    made = generate(model, "Once upon a time", GenerationConfig(GREEDY, max_tokens=5, ignore_eos=True))
    assert len(made.tokens) == 5
    with pytest.raises(LzsError, match=f"a {model.header.architecture} model cannot go back to token 2"):
        model.keep(2)


def test_as_a_target(kind: tuple[str, Model]) -> None:
    message = refusal(*kind)
    model = kind[1]
    before = type(model.llm)
    for draft in (Draft(lookup=2), Draft(lookup=2, n_max=4)):
        with pytest.raises(LzsError, match=message):
            generate(model, "Once upon a time", GenerationConfig(GREEDY, max_tokens=5, draft=draft))
        with pytest.raises(LzsError, match=message):
            next(generate_many(model, [Request(0, "Once upon a time", GenerationConfig(GREEDY))], draft=draft))
        with pytest.raises(LzsError, match=message):
            attach(model.llm, draft=draft)
    assert type(model.llm) is before
    with pytest.raises(LzsError, match=message):
        spec_check(model)


def test_as_a_draft(kind: tuple[str, Model]) -> None:
    with (
        Model(default_model(), n_ctx=64, n_threads=1) as target,
        pytest.raises(LzsError, match=refusal(*kind)),
    ):
        generate(target, "Once upon a time", GenerationConfig(GREEDY, max_tokens=5, draft=Draft(kind[1])))
