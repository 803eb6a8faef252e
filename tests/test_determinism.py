"""The picked token as docs/determinism.md specifies it: its vectors against the twins, the C noise and the library.

The vectors come from `determinism`, the twin in single precision; here `reference`, the twin in double precision,
bounds every number of theirs, and what is meant to have the same bits is asked for them.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import determinism as twin
import make_determinism_vectors as maker
import native
import reference
from lzsampler import LzsError, Params, Sampler
from lzsampler.decoding.verification import Speculation

Record = dict[str, Any]
VECTORS: dict[str, list[Record]] = json.loads(maker.PATH.read_text())
DOC = (native.ROOT / "docs" / "determinism.md").read_text()


def number(text: str) -> int:
    return int(text, 16)


def single(bits: str) -> float:
    return float(np.uint32(number(bits)).view(np.float32))


def real_params(record: Record) -> dict[str, Any]:
    """Return the params of a pick, reals as floats (they are singles, so nothing is rounded)."""
    params: Record = {
        k: float.fromhex(v) if isinstance(v, str) and k != "ties" else v for k, v in record["params"].items()
    }
    bias = [(token, float.fromhex(v)) for token, v in params.pop("logit_bias", ())]
    return params | {"logit_bias": bias} if bias else params


def row(record: Record) -> twin.Singles:
    return np.array([float.fromhex(x) for x in record["logits"]], np.float32)


def mask(record: Record) -> Any:
    return None if record["mask"] is None else np.array([number(w) for w in record["mask"]], np.uint32)


def pick_id(record: Record) -> str:
    return str(record["name"])


PICKS = VECTORS["picks"]
GOOD = [record for record in PICKS if record["error"] is None]
BAD = [record for record in PICKS if record["error"] is not None]


# ---- the file and the page ----


def test_the_file_is_what_the_twin_says() -> None:
    assert maker.PATH.read_text() == maker.text(), "run tests/make_determinism_vectors.py"


def test_the_page_has_the_coefficients() -> None:
    on_page = set(re.findall(r"-?0x1\.[0-9a-f]+p[+-]\d+", DOC))
    for coefficient in [*twin.LOG2_1P, *twin.EXP2[:-1], *twin.WEIGHT_TABLE, twin.WEIGHT_ORIGIN, twin.WEIGHT_LEAST]:
        assert coefficient in on_page


def test_the_worked_example_is_the_vector() -> None:
    """Every number in the page's table of the worked example, to the digits that it has there."""
    example = next(record for record in PICKS if record["name"].startswith("worked example"))
    edits = tuple(twin.Edit(e["token"], float.fromhex(e["repeat"]), float.fromhex(e["bias"])) for e in example["edits"])
    params = {k: v for k, v in real_params(example).items() if not k.endswith("_penalty")}
    (draw,) = example["draws"]
    plan = twin.Plan(edits, tuple(number(w) for w in example["mask"]), seed=number(draw["seed"]), position=7, **params)
    picked = twin.pick(row(example), plan)
    noise = twin.token_noise(picked.kept, plan.seed, plan.position)
    weights = twin.weight(twin.bits_below(twin.edited(row(example), edits)[picked.kept], np.float32(2.5), 0.75))
    for i, token in enumerate(picked.kept.tolist()):
        bits = [maker.float_bits(values[i]) for values in (picked.y, noise, picked.scores)]
        assert f"| {token} | {picked.y[i]:.6f} | {weights[i]} | {noise[i]:.6f} | {picked.scores[i]:.6f} | " in DOC
        assert all(b in DOC for b in bits[1:])
    assert f"The token is {draw['token']}." in DOC


def test_the_page_defines_philox() -> None:
    """The round as the page writes it, with the page's own numbers, gives the vectors."""
    (block,) = re.findall(r"repeated 10 times:\n\n((?: {4}.*\n)+)", DOC)
    code = "\n".join(line.strip() for line in block.splitlines())
    for record in VECTORS["philox"]:
        names = ("c0", "c1", "c2", "c3", "k0", "k1")
        state = dict(zip(names, map(number, record["counter"] + record["key"]), strict=True))
        for _ in range(10):
            exec(code, {}, state)  # the page's block is Python too
        assert [state[name] for name in names[:4]] == [number(w) for w in record["words"]]


# ---- every stage, against double precision ----


def test_philox() -> None:
    assert VECTORS["philox"][0]["words"] == ["0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"]
    for record in VECTORS["philox"]:
        key = [number(w) for w in record["key"]]
        words = reference.philox4x32(np.array([[number(w) for w in record["counter"]]], np.uint64), (key[0], key[1]))
        assert words[0].tolist() == [number(w) for w in record["words"]]


def test_functions() -> None:
    for record in VECTORS["log2"]:
        exact = math.log2(float.fromhex(record["v"]))
        assert single(record["log2"]) == pytest.approx(exact, rel=3e-7, abs=1e-12)
    for record in VECTORS["exponential"]:
        exact = -math.log1p(-float.fromhex(record["v"])) / math.log(2)
        assert single(record["exponential"]) == pytest.approx(exact, rel=4e-7)
    for record in VECTORS["weight"]:
        exact = 2.0 ** (31 - float.fromhex(record["y"]))
        assert exact * (1 - 6.5e-7) - 1 <= record["weight"] <= exact * (1 + 6.5e-7)


def test_groups() -> None:
    for record in VECTORS["groups"]:
        word = number(record["word"])
        v = min(((word >> 6) + 0.5) * 2.0**-26, 1 - 2.0**-24)
        assert record["holder"] == word & 63
        rounding = 2.0**-25 / (1 - v)  # of v to single
        assert single(record["minimum"]) == pytest.approx(-math.log2(1 - v) / 64, rel=1e-6, abs=rounding)


def test_tokens() -> None:
    holders = 0
    for record in VECTORS["tokens"]:
        token, seed, position = record["id"], number(record["seed"]), number(record["position"])
        assert 0 <= record["member"] < 64
        assert token == 64 * record["group"] + record["member"]
        exact = reference.race_noise(np.array([token]), seed, position)[0]
        assert single(record["log2_noise"]) == pytest.approx(exact, abs=2e-6)
        assert math.log2(single(record["noise"])) == pytest.approx(exact, abs=1e-6)
        word = reference.words_at(np.array([record["group"]]), seed, position, reference.GROUP_DOMAIN)[0]
        holders += int(word) % 64 == record["member"]
    assert holders >= len(VECTORS["tokens"]) // 12  # at least one of the twelve at every place


def test_sequence_seeds() -> None:
    seeds = [record["sequence_seed"] for record in VECTORS["sequence_seeds"]]
    assert len(set(seeds)) == len(seeds)


@pytest.mark.parametrize("record", GOOD, ids=pick_id)
def test_picks_are_right_in_double_precision(record: Record) -> None:
    """The twin that knows nothing of float32 accepts every kept set and every token."""
    params = Params(**real_params(record))
    exact = reference.row(row(record), record["history"], params, mask(record))
    assert exact.agrees(record["kept"])
    for draw in record["draws"]:
        winners = exact.winners(record["kept"], number(draw["seed"]), draw["position"])
        assert draw["token"] in winners
        assert params.temperature == 0 or len(winners) == 1 or len(record["kept"]) > 1000


def test_what_verification_adds_is_right_in_double_precision() -> None:
    for record in VECTORS["exp2"]:
        y = float.fromhex(record["y"])
        assert float.fromhex(record["exp2"]) == pytest.approx(2.0**-y if y < 125.5 else 0, rel=2e-7)
    numbers = [float.fromhex(record[name]) for record in VECTORS["uniforms"] for name in ("acceptance", "residual")]
    assert len(set(numbers)) == len(numbers)
    assert 0 <= min(numbers) < max(numbers) < 1
    for record in VECTORS["verifications"]:
        p, q = ({t: single(bits) for t, bits in record[name]} for name in ("p", "q"))
        for draw in record["draws"]:
            seed, t = number(draw["seed"]), draw["drafted"]
            u = twin.uniform(seed, draw["position"], reference.ACCEPTANCE_DOMAIN)
            stands = u < p.get(t, 0.0) / q[t]
            assert stands == (draw["token"] == t)
            assert stands or p[draw["token"]] > q.get(draw["token"], 0.0)
    fell = [draw["token"] != draw["drafted"] for record in VECTORS["verifications"] for draw in record["draws"]]
    assert 15 < sum(fell) < len(fell) - 15


def test_picks_differ() -> None:
    """The vectors tell seeds, positions and tokens apart: no constant answer passes."""
    by_place = next(record for record in GOOD if record["name"].startswith("1025 equal"))
    assert len({draw["token"] for draw in by_place["draws"]}) > 12  # of 16, among 1,025 tokens
    assert {record["error"] for record in BAD} == {"nan", "nothing allowed"}


# ---- the C noise: the definitions of c/backend/noise.h, bit for bit ----

PROGRAM = r"""
#include <stdio.h>
#include "noise.h"
int main(int argc, char **argv) {
    FILE *file = fopen(argv[argc - 1], "r");
    unsigned long long seed, position;
    long long id;
    while (fscanf(file, "%llx %llx %lld", &seed, &position, &id) == 3) {
        if (id < 0) {
            printf("0x%016llx\n", (unsigned long long)lzs_derived_seed(seed, position));
        } else {
            float e = lzs_token_noise(lzs_noise_key_of(seed, position), (int32_t)id);
            printf("0x%08x 0x%08x\n", (unsigned)lzs_float_bits(e), (unsigned)lzs_float_bits(lzs_log2(e)));
        }
    }
    return 0;
}
"""


def test_the_noise_of_the_header(tmp_path: Path) -> None:
    source, program = tmp_path / "noise.c", tmp_path / "noise"
    source.write_text(PROGRAM)
    backend = native.ROOT / "c" / "backend"
    flags = ["-std=c11", "-O2", "-ffp-contract=off", f"-I{backend}"]
    native.run([native.compiler(), *flags, source, "-o", program], tmp_path)
    asked = [f"{record['seed']} {record['position']} {record['id']}" for record in VECTORS["tokens"]]
    wanted = [f"{record['noise']} {record['log2_noise']}" for record in VECTORS["tokens"]]
    asked += [f"{record['seed']} {record['sequence']} -1" for record in VECTORS["sequence_seeds"]]
    wanted += [record["sequence_seed"] for record in VECTORS["sequence_seeds"]]
    ids = np.arange(0, 200_000, 7)
    for seed, position in ((3, 2**33), (2**64 - 3, 12)):
        noise = twin.token_noise(ids, seed, position)
        asked += [f"{seed:x} {position:x} {t}" for t in ids]
        pairs = zip(noise.view(np.uint32).tolist(), twin.log2(noise).view(np.uint32).tolist(), strict=True)
        wanted += [f"0x{e:08x} 0x{log:08x}" for e, log in pairs]
    (tmp_path / "asked").write_text("\n".join(asked))
    assert native.run([program, tmp_path / "asked"], tmp_path).splitlines() == wanted


# ---- the library ----


def sampler(record: Record, position: int = 0, seed: int = 0) -> Sampler:
    logits = row(record)
    made = Sampler(len(logits), Params(seed=seed, **real_params(record)))
    for token in record["history"] or [0] * position:
        made.accept(token)
    made.set_mask(mask(record))
    return made


@pytest.mark.parametrize("record", GOOD, ids=pick_id)
def test_the_library_keeps_what_is_kept(record: Record) -> None:
    ids, _ = sampler(record).distribution(row(record))
    assert ids.tolist() == record["kept"]


@pytest.mark.parametrize("record", GOOD, ids=pick_id)
def test_the_library_makes_the_edits(record: Record) -> None:
    made = zip(*(values.tolist() for values in sampler(record).edits()), strict=True)
    wanted = [(e["token"], float.fromhex(e["repeat"]), float.fromhex(e["bias"])) for e in record["edits"]]
    assert list(made) == wanted


@pytest.mark.parametrize("record", GOOD, ids=pick_id)
def test_the_library_picks_the_token(record: Record) -> None:
    logits = row(record)
    for draw in record["draws"]:
        assert sampler(record, draw["position"], number(draw["seed"])).sample(logits) == draw["token"]


@pytest.mark.parametrize("record", BAD, ids=pick_id)
def test_the_library_refuses(record: Record) -> None:
    error, message = (ValueError, "nan") if record["error"] == "nan" else (LzsError, "no token is allowed")
    for call in ("sample", "distribution"):
        with pytest.raises(error, match=message):
            getattr(sampler(record), call)(row(record))


@pytest.mark.parametrize("record", VECTORS["verifications"], ids=pick_id)
def test_the_library_verifies(record: Record) -> None:
    target, draft = (np.array([float.fromhex(x) for x in record[name]], np.float32) for name in ("target", "draft"))
    for draw in record["draws"]:
        made = Sampler(len(target), Params(seed=number(draw["seed"]), **real_params(record)))
        for _ in range(draw["position"]):
            made.accept(0)
        speculation = Speculation(made, mode="mrs", max_draft=1, n_draft_vocab=len(draft))
        assert speculation.draft(draft) == draw["drafted"]
        assert speculation.verify([target, target]).tokens[0] == draw["token"]
