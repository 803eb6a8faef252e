"""Writes tests/vectors/determinism.json, the test vectors of docs/determinism.md, from the twin in determinism.py.

    python tests/make_determinism_vectors.py

The C library has no part in it. tests/vectors/README.md says what the fields are.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import determinism as twin
import reference

PATH = Path(__file__).parent / "vectors" / "determinism.json"

Record = dict[str, Any]

INF, NAN = float("inf"), float("nan")
FLOAT_MAX = float(twin.FLOAT_MAX)
SEEDS = (0, 1, 42, 2**32, 0x0123456789ABCDEF, 2**64 - 1)
POSITIONS = (0, 1, 1000, 2**32 - 1, 2**32, 2**63 + 5)


# ---- numbers as text ----


def hex_float(x: Any) -> str:
    """Return a float as C writes it with %a, without zeros at the end: 0x1.8p+1, inf, nan."""
    mantissa, p, exponent = float(x).hex().partition("p")
    return mantissa.rstrip("0").rstrip(".") + p + exponent if p else mantissa


def hex_word(word: Any, digits: int = 8) -> str:
    return f"0x{int(word):0{digits}x}"


def float_bits(x: Any) -> str:
    return hex_word(np.float32(x).view(np.uint32))


def hex_seed(value: int) -> str:
    return hex_word(value, 16)


# ---- the stages before the pick ----


def philox_vectors() -> Iterable[Record]:
    top = 0xFFFFFFFF
    pi = (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0)
    for counter, key in [((0, 0, 0, 0), (0, 0)), ((top,) * 4, (top, top)), (pi[:4], pi[4:]), ((5, 7, 0, 1), (42, 0))]:
        words = reference.philox4x32(np.array([counter], np.uint64), (key[0], key[1]))[0]
        yield {name: [hex_word(w) for w in values]
               for name, values in (("counter", counter), ("key", key), ("words", words))}  # fmt: skip


def log2_vectors() -> Iterable[Record]:
    third = float.fromhex("0x1.555554p-1")  # the mantissa is taken from [2/3, 4/3)
    values = [1, 2, 0.5, 3, third, third + 2.0**-24, 4 / 3, 1e-10, 1e10, 0.9999999, 1.0000001, 24, 2.0**-126, FLOAT_MAX]
    x = twin.single(values)
    for value, result in zip(x, twin.log2(x), strict=True):
        yield {"v": hex_float(value), "log2": float_bits(result)}


def exponential_vectors() -> Iterable[Record]:
    switch = float.fromhex("0x1.555554p-2")
    values = [2.0**-32, 2.0**-27, 1e-6, 0.01, 0.25, switch - 2.0**-26, switch, 0.5, 0.75, 0.999, 1 - 2.0**-24]
    v = twin.single(values)
    for value, result in zip(v, twin.exponential(v), strict=True):
        yield {"v": hex_float(value), "exponential": float_bits(result)}


def weight_vectors() -> Iterable[Record]:
    values = [0, 1e-45, 1e-7, 0.0624, 0.25, 0.5, 0.99, 1, 1.4426950, 3.75, 10.3, 20.5, 30, 30.9, 31, 32, 1e9, INF]
    y = twin.single(values)
    for value, result in zip(y, twin.weight(y), strict=True):
        yield {"y": hex_float(value), "weight": int(result)}


def group_vectors() -> Iterable[Record]:
    for seed in SEEDS:
        for position in POSITIONS[:: 1 if seed == 42 else 3]:
            groups = np.array([0, 1, 2, 3, 4, 15, 16, 2373, 2**24 - 1])
            words = reference.words_at(groups, seed, position, reference.GROUP_DOMAIN)
            for group, word, minimum in zip(groups, words, twin.group_minimum(words), strict=True):
                yield {"seed": hex_seed(seed), "position": hex_seed(position), "group": int(group),
                       "word": hex_word(word), "holder": int(word) % 64, "minimum": float_bits(minimum)}  # fmt: skip


def token_vectors() -> Iterable[Record]:
    for seed in SEEDS:
        for position in POSITIONS[:: 1 if seed == 42 else 3]:
            holder = int(reference.words_at(np.array([0]), seed, position, reference.GROUP_DOMAIN)[0]) % 64
            ids = np.array([0, 1, 3, 4, 63, 64, 127, 128, 2999, 151_935, 2**30 - 1, holder])
            words = reference.words_at(ids, seed, position, reference.TOKEN_DOMAIN)
            noise = twin.token_noise(ids, seed, position)
            for i, t in enumerate(ids.tolist()):
                yield {"seed": hex_seed(seed), "position": hex_seed(position), "id": t, "group": t // 64,
                       "member": t % 64, "word": hex_word(words[i]), "noise": float_bits(noise[i]),
                       "log2_noise": float_bits(twin.log2(noise[i : i + 1])[0])}  # fmt: skip


def sequence_vectors() -> Iterable[Record]:
    for seed in SEEDS:
        for sequence in (0, 1, 2, 2**32, 2**64 - 1):
            yield {"seed": hex_seed(seed), "sequence": hex_seed(sequence),
                   "sequence_seed": hex_seed(reference.sequence_seed(seed, sequence))}  # fmt: skip


# ---- picks ----


def logits(n: int, stream: int, spread: float, steps: float = 64) -> npt.NDArray[np.float32]:
    """Return random logits in [0, spread), multiples of 1 / steps, so that they are short to write down."""
    words = reference.words_at(np.arange(n), 20250420, stream, 9)  # a domain of their own
    return np.asarray(np.floor(words / 2.0**32 * spread * steps) / steps, np.float32)


def mask_words(n: int, allowed: Iterable[int]) -> list[int]:
    words = [0] * ((n + 31) // 32)
    for i in allowed:
        words[i // 32] |= 1 << i % 32
    return words


def pick_record(
    name: str,
    row: Any,
    mask: Sequence[int] | None = None,
    history: Sequence[int] = (),
    seeds: Sequence[int] = (0, 42),
    positions: Sequence[int] = (0, 7),
    **params: Any,
) -> Record:
    """Return the record of one row under some parameters, picked with each seed at each position.

    With a ``history`` of accepted tokens the position is its length, and the penalties of ``params`` make the edits.
    ``logit_bias``, pairs of a token and a number, makes some too.
    """
    x = twin.single(row)
    real = {k: float(np.float32(v)) for k, v in params.items() if isinstance(v, float)}
    repeat, presence = real.get("repetition_penalty", 1.0), real.get("presence_penalty", 0.0)
    folded = {t: twin.Edit(t, repeat, -presence + 0.0) for t in history}
    for t, bias in params.get("logit_bias", ()):
        before = folded.get(t, twin.Edit(t, 1.0, 0.0))
        folded[t] = before._replace(bias=float(np.float32(before.bias) + np.float32(bias)))
    edits = tuple(folded[t] for t in sorted(folded))
    made_edits = ("repetition_penalty", "presence_penalty", "logit_bias")
    settings = {k: real.get(k, v) for k, v in params.items() if k not in made_edits}
    written: Record = {k: hex_float(real[k]) if k in real else v for k, v in params.items()}
    if "logit_bias" in params:
        written["logit_bias"] = [[t, hex_float(np.float32(bias))] for t, bias in params["logit_bias"]]
    record: Record = {
        "name": name,
        "logits": [hex_float(value) for value in x],
        "params": written,
        "history": list(history),
        "edits": [{"token": e.token, "repeat": hex_float(e.repeat), "bias": hex_float(e.bias)} for e in edits],
        "mask": None if mask is None else [hex_word(w) for w in mask],
        "error": None,
    }
    places = [(seed, p) for seed in seeds for p in (positions if not history else [len(history)])]
    words = None if mask is None else tuple(mask)
    for seed, position in places:
        try:
            picked = twin.pick(x, twin.Plan(edits, words, seed=seed, position=position, **settings))
        except ValueError as error:
            nothing = isinstance(error, twin.NothingAllowedError)
            return record | {"error": "nothing allowed" if nothing else "nan"}
        by_id = np.argsort(picked.kept)
        record["kept"] = picked.kept[by_id].tolist()
        draw: Record = {"seed": hex_seed(seed), "position": position, "token": picked.token}
        if len(by_id) <= 8 and params.get("temperature") != 0.0:
            draw["scores"] = [float_bits(score) for score in picked.scores[by_id]]
        record.setdefault("draws", []).append(draw)
    return record


EXAMPLE: Record = {
    "row": [3.0, 1.0, 2.5, 2.5, -1.0, 0.0],
    "mask": [0b111101],  # all but token 1
    "history": [0, 0, 5, 0, 0, 5, 0],
    "repetition_penalty": 1.25, "presence_penalty": 0.25, "temperature": 0.75,
    "top_k": 4, "top_p": 0.9375, "min_p": 0.03125,
    "seeds": [42],
}  # fmt: skip


def pick_vectors() -> Iterable[Record]:
    yield pick_record("worked example of docs/determinism.md", **EXAMPLE)
    yield pick_record("one token", [-3.5])
    small = logits(33, 0, 6)
    for t in (1.0, 0.7, 2e-6, 1e6, 30.0):
        yield pick_record(f"temperature {t}", small, temperature=t, seeds=SEEDS, positions=(0, 1, 7, 40))
    yield pick_record("temperature 0, ties", [1, 3, -INF, 3, 3], temperature=0.0)
    yield pick_record("temperature 0, the first maximum masked", [1, 3, -INF, 3, 3], mask=[0b10101], temperature=0.0)
    yield pick_record("temperature 0, a zero of each sign", [-1, -0.0, 0.0], temperature=0.0)

    tied = [2, 1, 2, 0.5, 1, 1, -1, 2]
    for ties in ("cut", "keep"):
        for k in (1, 2, 4, 5, 7, 8, 100):
            yield pick_record(f"top-k {k}, ties {ties}", tied, top_k=k, ties=ties, seeds=[1])
        for p in (0.0, 0.3, 0.7, 0.95):
            yield pick_record(f"top-p {p}, ties {ties}", tied, top_p=p, ties=ties, seeds=[1])
        yield pick_record(f"zeros of both signs tie, ties {ties}", [0.0, -0.0, -0.0, 0.0, -5], top_k=3, ties=ties)
        yield pick_record(f"top-p of what top-k leaves, ties {ties}", tied, top_k=4, top_p=0.75, ties=ties)
    yield pick_record("top-p reached exactly", [1, 1, 1, 1], top_p=0.5)
    yield pick_record("top-p just above", [1, 1, 1, 1], top_p=float.fromhex("0x1.000002p-1"))
    yield pick_record("top-p just below 1", small, top_p=1 - 2.0**-24)
    yield pick_record("min-p 1 keeps the equals of the best", tied, min_p=1.0)
    for p in (0.5, 0.1, 1e-30, 1e-42):
        yield pick_record(f"min-p {p}", [0, -1, -20, -80, -200, -1e30], min_p=p)
    yield pick_record("min-p exactly at the limit", [0, -1, -2, -3], min_p=float(np.exp2(-2 * float(twin.LOG2_E))))
    combined: Record = {"top_k": 20, "top_p": 0.9, "min_p": 0.1}
    yield pick_record("all truncations", small, temperature=1.5, **combined)
    yield pick_record("all truncations, temperature last", small, temperature=1.5, temperature_last=True, **combined)
    yield pick_record("temperature last, cold", small, temperature=0.2, temperature_last=True, top_p=0.5)

    extreme = [FLOAT_MAX, -FLOAT_MAX, 0, -INF, FLOAT_MAX, 1e38]
    yield pick_record("the largest floats", extreme)
    yield pick_record("the largest floats, hot", extreme, temperature=1e6)
    yield pick_record("plus infinity wins", [INF, 0, 0, -5])
    yield pick_record("two of plus infinity", [1, INF, 0, INF, -INF], temperature=0.8)
    yield pick_record("plus infinity, top-p", [1, INF, 0, INF, 9], top_p=0.9)
    tiny = [1e-45, 0.0, 1e-40, -1e-42, 2e-38]
    yield pick_record("denormal logits", tiny)
    yield pick_record("denormal logits, as far apart as can be", tiny, temperature=2e-6, top_p=0.9)
    yield pick_record("denormal y", [0.0, 1e-35, -1e-35, 2e-36], temperature=1000.0)

    history = [3, 1, 3, 0, 5]
    for r, p in ((1.3, 0.0), (1.0, 0.5), (1.3, 0.5), (0.5, -1.5)):
        yield pick_record(
            f"repetition {r}, presence {p}", tied, history=history, repetition_penalty=r, presence_penalty=p
        )
    yield pick_record("edits stay finite", [3e38, -3e38, INF, -INF, 1], history=[0, 1, 2, 3], repetition_penalty=0.25)
    yield pick_record("a bias that overflows", [-3e38, 3e38, 2e38], history=[0, 1], presence_penalty=3e38)
    yield pick_record("edits of zeros", [0.0, -0.0, 0.0], history=[0, 1], repetition_penalty=2.0)
    yield pick_record("edits and a mask", tied, history=history, repetition_penalty=1.7, mask=[0b10111010], top_k=3)

    signs = [2.0, -2.0, 0.0, -1.5, 0.5, -1.0]
    for aware in (True, False):
        yield pick_record(
            f"sign_aware {aware}", signs, history=[0, 1, 2, 3], repetition_penalty=1.75, sign_aware=aware, top_k=4
        )
    yield pick_record(
        "sign_aware False, a logit that overflows", [-3e38, 3e38, 1], history=[0, 1], repetition_penalty=0.25,
        sign_aware=False, temperature=1e6,
    )  # fmt: skip
    forbidden = [0.5, INF, NAN, 1.0, 0.25]
    yield pick_record("logit bias", tied, logit_bias=[(1, 0.75), (4, -0.5), (6, 2.0)], top_k=5)
    yield pick_record("a logit bias of -inf on a finite logit", tied, logit_bias=[(0, -INF)], top_k=2)
    yield pick_record("a logit bias of -inf on +inf and NaN", forbidden, logit_bias=[(1, -INF), (2, -INF)])
    yield pick_record("the same, temperature 0", forbidden, logit_bias=[(1, -INF), (2, -INF)], temperature=0.0)
    yield pick_record("a finite logit bias leaves +inf", [0.5, INF, 1.0], logit_bias=[(1, -100.0)])
    yield pick_record("a finite logit bias leaves NaN", [0.5, NAN, 1.0], logit_bias=[(1, -100.0)])
    yield pick_record("a logit bias and the penalties of a token", tied, history=history, repetition_penalty=1.5,
                      presence_penalty=0.5, logit_bias=[(0, 0.25), (3, -INF)])  # fmt: skip
    yield pick_record("a logit bias forbids every token", [1.0, INF, NAN], logit_bias=[(t, -INF) for t in range(3)])
    yield pick_record("a logit bias and a mask forbid every token", [1.0, 2.0], logit_bias=[(0, -INF)], mask=[0b01])

    middle = logits(100, 1, 4)
    yield pick_record("every third token", middle, mask=mask_words(100, range(0, 100, 3)), top_p=0.8)
    spare = [0xFFFFFFFF] * 4
    yield pick_record("bits beyond the vocabulary mean nothing", middle, mask=spare, top_k=30)
    nan = [1.0, NAN, 2.0]
    yield pick_record("NaN", nan)
    yield pick_record("NaN, temperature 0", nan, temperature=0.0)
    yield pick_record("a masked NaN is never seen", nan, mask=[0b101])
    yield pick_record("nothing is allowed", [1.0, 2.0], mask=[0])
    yield pick_record("every logit is minus infinity", [-INF, -INF])
    yield pick_record("the only allowed logit is minus infinity", [1.0, -INF], mask=[0b10])

    yield pick_record("1025 equal logits", np.zeros(1025), seeds=(0, 1, 2, 3), positions=(0, 1, 2, 3))
    large = logits(2100, 2, 8, steps=8)
    yield pick_record("2100 tokens", large, seeds=(0, 1, 2, 3), positions=(0, 1, 2, 3))
    yield pick_record("2100 tokens, top-k 1500, ties", large, top_k=1500, seeds=(4,))
    yield pick_record("2100 tokens, top-p", large, top_p=0.9, temperature=0.8)
    yield pick_record("2100 tokens, masked", large, mask=mask_words(2100, range(5, 2100, 7)), temperature=2.0)


# ---- the verification of drafts ----


def exp2_vectors() -> Iterable[Record]:
    y = twin.single([0, 1e-7, 0.25, 0.49999997, 0.5, 0.75, 1, 1.4426950, 10.3, 64.5, 125.25, 125.5, INF])
    for value, result in zip(y, twin.exp2_negative(y), strict=True):
        yield {"y": hex_float(value), "exp2": hex_float(result)}


def uniform_vectors() -> Iterable[Record]:
    for seed in SEEDS:
        for position in POSITIONS[:: 1 if seed == 42 else 3]:
            yield {"seed": hex_seed(seed), "position": hex_seed(position),
                   "acceptance": hex_float(twin.uniform(seed, position, reference.ACCEPTANCE_DOMAIN)),
                   "residual": hex_float(twin.uniform(seed, position, reference.RESIDUAL_DOMAIN))}  # fmt: skip


def verification_vectors() -> Iterable[Record]:
    five = [2.0, 1.0, 0.5, 0.0, -1.0]
    pairs: list[tuple[str, list[float], list[float], Record]] = [
        ("another order", five, five[::-1], {}),
        ("nearly the same", five, [2.0, 1.125, 0.5, 0.0, -1.0], {"temperature": 0.75}),
        ("the same", five, five, {}),
        ("nothing in common", [3.0, 2.0, 0.0, 0.0], [0.0, 0.0, 2.0, 1.0], {"top_k": 2}),
        ("truncated at two places", five, [0.0, 2.5, 1.0, 0.5, 0.25], {"top_p": 0.75}),
        ("temperature 0", five, [0.0, 2.5, 1.0, 0.5, 0.25], {"temperature": 0.0}),
        ("a smaller draft", five, [0.0, 1.0, 0.0], {}),
        ("a larger draft", five, [0.0, 1.0, 2.0, 1.0, 0.0, 9.0, 9.0], {"min_p": 0.125}),
    ]
    for name, target, draft, params in pairs:
        settings: Record = {k: float(np.float32(v)) if isinstance(v, float) else v for k, v in params.items()}
        draws: list[Record] = []
        for seed in (0, 42):
            for position in range(6):
                plan = twin.Plan(seed=seed, position=position, **settings)
                row = twin.single(draft[: len(target)])
                drafted = twin.pick(row, plan).token
                p, q = (twin.distribution(*twin.kept(r, plan)) for r in (twin.single(target), row))
                token = twin.verified(p, q, drafted, seed, position)
                draws.append({"seed": hex_seed(seed), "position": position, "drafted": drafted, "token": token})
        yield {
            "name": name,
            "target": [hex_float(x) for x in target],
            "draft": [hex_float(x) for x in draft],
            "params": {k: hex_float(v) if isinstance(v, float) else v for k, v in settings.items()},
            "p": [[t, float_bits(x)] for t, x in p.items()],
            "q": [[t, float_bits(x)] for t, x in q.items()],
            "draws": draws,
        }


# ---- all of it ----


def vectors() -> dict[str, list[Record]]:
    return {
        "philox": list(philox_vectors()),
        "log2": list(log2_vectors()),
        "exponential": list(exponential_vectors()),
        "weight": list(weight_vectors()),
        "groups": list(group_vectors()),
        "tokens": list(token_vectors()),
        "sequence_seeds": list(sequence_vectors()),
        "picks": list(pick_vectors()),
        "exp2": list(exp2_vectors()),
        "uniforms": list(uniform_vectors()),
        "verifications": list(verification_vectors()),
    }


def text() -> str:
    """Return the file's text: JSON with one record a line."""
    parts = []
    for stage, records in vectors().items():
        lines = ",\n".join("  " + json.dumps(record) for record in records)
        parts.append(f'"{stage}": [\n{lines}\n]')
    return "{" + ",\n".join(parts) + "}\n"


if __name__ == "__main__":
    PATH.write_text(text())
