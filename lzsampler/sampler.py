"""`Sampler`: the sampler of one sequence, implemented in C, and `lz_bits`."""

import pickle
from copy import copy, deepcopy
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from ._check import INT32_MAX, Tokens, check, integer, logits_array, mask_array, output_array, row_of, token_array
from ._ffi import ffi, lib
from ._values import counted, unknown_keyword
from .detection import MAX_WINDOW, Loop, RepetitionDetection, Stuck, StuckDetection
from .errors import ArgumentError, ArgumentTypeError, LzsError
from .params import (
    CHOICES,
    DETECTIONS,
    MAX_BUFFER,
    SEPARATORS,
    Formula,
    Params,
    changed,
    fixed_difference,
    usual_buffer,
)
from .util.in_use import InUse, one_thread, using

if TYPE_CHECKING:
    from .constraint.grammar import Grammar
    from .explanation import Explanation

MaskOwner = Literal["user", "grammar"]
_OWNERS = {"user": lib.LZS_MASK_USER, "grammar": lib.LZS_MASK_GRAMMAR}
MAX_VOCAB: int = lib.LZS_MAX_VOCAB
_S = TypeVar("_S", bound="Sampler")
_ATTRIBUTES = {"n_vocab", "params", "grammar", "handle", "in_use", "_token", "_stepped"}  # that `Sampler` itself sets
_EDIT = np.dtype([("token", np.int32), ("repeat", np.float32), ("bias", np.float32)])  # lzs_edit of lzsampler_plan.h


class Sampler:
    """Penalties, mask, temperature, truncation and pick for the tokens of one sequence.

    ``n_vocab``: number of logits in a row. ``settings``: fields of `Params` by name, as in ``Sampler(n_vocab,
    lz_penalty=0.3, temperature=0.7)``. They replace fields of ``params``, if it is given. Without both there is no
    penalty, and the seed is 0.

    The same history, logits, params and seed give the same token. `sample` does not change the sampler; `accept` does.
    Samplers made without a seed have the same default seed, so they draw with the same noise. For several independent
    texts, give each text its own seed (`sequence_seed`).

    `copy.copy` and `copy.deepcopy` return a `clone`. Pickling keeps the settings and tokens, and raises
    pickle.PicklingError while a mask or a grammar is set. Only one thread at a time may use a sampler; meanwhile, other
    threads get an LzsError.
    """

    def __init__(self, n_vocab: int, params: Params | None = None, **settings: Any) -> None:
        self.n_vocab = integer("n_vocab", n_vocab, 1, MAX_VOCAB)
        given = Params() if params is None else params
        if not isinstance(given, Params):
            raise ArgumentTypeError(f"params must be a Params, got {params!r}")
        for name in settings:
            if name not in Params.__dataclass_fields__:
                raise unknown_keyword("Sampler", name, Params.__dataclass_fields__)
        self.params = changed(given, settings)
        refuse_tokens_outside(self.params, self.n_vocab)
        self.grammar: Grammar | None = None  # The C sampler uses the grammar's memory, so this keeps it alive.
        p, arrays = c_params(self.params)
        out = ffi.new("lzs_sampler **")
        check(lib.lzs_sampler_new(self.n_vocab, p, out))
        del arrays
        self.handle = _owned(out[0])  # `lzs_sampler *`; `lzsampler.llama` uses it, too
        self.in_use: InUse = _Held(self.handle)
        self._token = ffi.new("int32_t *")

    # -- history --

    @property
    def position(self) -> int:
        """Number of accepted tokens. It selects the noise of the next draw."""
        return int(lib.lzs_position(self.handle))

    @property
    @one_thread
    def memory(self) -> int:
        """Bytes that the C sampler holds."""
        return int(lib.lzs_memory(self.handle))

    @property
    def loop(self) -> Loop | None:
        """The loop that `Params.repetition_detection` found at the end of the accepted tokens; None if it found none.

        The sampler finds a loop at the token that completes the loop (`Loop.end` is the `position` then). If several
        patterns are complete, the loop has the shortest pattern. The loop stays set until `reset`, or until a `rewind`
        takes the completing token back. A clone has the loop too.
        """
        return loop_found(self.handle)

    @property
    def stuck(self) -> Stuck | None:
        """The stretch without new text, by `Params.stuck_detection`; None if there is no such stretch.

        The sampler finds the stretch at the token with which the score reaches the threshold (`Stuck.end` is the
        `position` then). The stretch stays set until `reset`, or until a `rewind` to a `position` before `Stuck.end`. A
        clone has the stretch too.
        """
        return stuck_found(self.handle)

    @one_thread
    def prime(self, tokens: Tokens) -> None:
        """Pass the prompt, int[n], before the first `accept`. Penalties see the prompt only with ``history="all"``.

        Further calls append tokens. Raises ValueError for ids outside the vocabulary and after an `accept`.
        """
        array = token_array("tokens", tokens, self.n_vocab)
        if self.position:
            accepted = counted(self.position, "token was", "tokens were")
            raise ArgumentError(f"prime() comes before accept(), but {accepted} accepted: reset() first")
        self._refuse_step(lib.lzs_prime(self.handle, ffi.from_buffer("int32_t[]", array), array.size))

    def accept(self, token: int) -> None:
        """Add a token to the text, whether or not `sample` picked it. ValueError if it is not in the vocabulary."""
        token = integer("token", token, 0, self.n_vocab - 1)
        status = lib.lzs_try_accept(self.handle, token)
        if status == lib.LZS_EBUSY:
            with self.in_use:
                status = lib.lzs_accept(self.handle, token)
        if status:
            self._refuse_step(status)

    @one_thread
    def rewind(self, n: int) -> None:
        """Take back the last ``n`` accepted tokens. If there are fewer, raise ValueError and change nothing."""
        n = integer("n", n, 0, self.position, high_is=", the number of accepted tokens")
        self._refuse_step(lib.lzs_rewind(self.handle, n))

    @one_thread
    def reset(self) -> None:
        """Forget history, position and masks. The settings stay, and a grammar returns to its start state."""
        lib.lzs_sampler_reset(self.handle)

    @one_thread
    def clone(self: _S) -> _S:
        """Return a sampler with the same history, position, masks, grammar and settings.

        The clone has the same seed too, so sampler and clone draw the same tokens. To make their texts independent from
        here on, give one of the samplers another seed (`set_seed`). Attributes of a subclass are shared, not copied.
        """
        out = ffi.new("lzs_sampler **")
        check(lib.lzs_sampler_clone(self.handle, out))
        made = object.__new__(type(self))
        vars(made).update(self._added())
        made.n_vocab, made.params, made.grammar = self.n_vocab, self.params, self.grammar
        made.handle = _owned(out[0])
        made.in_use = _Held(made.handle)
        made.in_use.also = self.in_use.also
        made._token = ffi.new("int32_t *")
        return made

    def __copy__(self: _S) -> _S:
        return self.clone()

    def __deepcopy__(self: _S, memo: dict[int, Any]) -> _S:
        made = memo[id(self)] = self.clone()
        vars(made).update(deepcopy(self._added(), memo))
        return made

    def _added(self) -> dict[str, Any]:
        """Return the attributes that a subclass or a user added."""
        return {name: value for name, value in vars(self).items() if name not in _ATTRIBUTES}

    @one_thread
    def __reduce__(self) -> tuple[Any, ...]:
        plan = ffi.new("lzs_plan *")
        if lib.lzs_sampler_plan(self.handle, plan) or plan.mask:
            raise pickle.PicklingError("a Sampler cannot be pickled while a mask or a grammar is set: remove it first")
        n = ffi.new("size_t *")
        tokens = lib.lzs_tokens(self.handle, n)
        history = ffi.unpack(tokens, n[0]) if n[0] else []
        prompt = len(history) - self.position
        made_from = type(self), self.n_vocab, self.params, history[:prompt], history[prompt:]
        return _replayed, made_from, self._added() or None

    @one_thread
    def copy_from(self, other: "Sampler") -> None:
        """Copy history, position, masks, grammar and settings from ``other``, without making a new object.

        Raises ValueError and changes nothing if the vocabularies differ, or if the two samplers differ in a setting
        that cannot change between steps (see `set_params`).
        """
        if not isinstance(other, Sampler):
            raise ArgumentTypeError(f"other must be a Sampler, got {other!r}")
        if other.n_vocab != self.n_vocab:
            raise ArgumentError(f"n_vocab of the other sampler must be {self.n_vocab}, got {other.n_vocab}")
        difference = fixed_difference(self.params, other.params)
        if difference is not None:
            raise ArgumentError(f"{difference} by copying from another sampler: clone() the other one instead")
        with using(other):
            check(lib.lzs_sampler_copy(self.handle, other.handle))
            self.params, self.grammar, self.in_use.also = other.params, other.grammar, other.in_use.also

    # -- settings --

    @one_thread
    def set_params(self, params: Params) -> None:
        """Use other settings from the next step on. History, position and masks stay.

        The new settings replace all fields, the seed too. To change one field and keep the others, pass
        ``dataclasses.replace(sampler.params, temperature=0.5)``. Some fields cannot change: ``lz_window``,
        ``lz_buffer``, ``penalty_window``, ``history``, ``exempt``, ``repetition_detection``, ``stuck_detection``,
        ``logit_bias``, ``dry_penalty_last_n``, ``lz_rule``, ``lz_min_match``, ``lz_separators``, ``lz_commas``,
        ``dry_breakers``, and whether ``structure`` is "free". The strengths of LZ and of DRY can change, but neither
        penalty can be switched on or off. Repetition, frequency and presence count as one penalty in this respect. If a
        field cannot change, a ValueError names the field, and nothing changes.
        """
        if not isinstance(params, Params):
            raise ArgumentTypeError(f"params must be a Params, got {params!r}")
        difference = fixed_difference(self.params, params)
        if difference is not None:
            raise ArgumentError(f"{difference} between steps: make a new Sampler")
        check(lib.lzs_sampler_set_params(self.handle, c_numbers(params)))
        self.params = params

    @one_thread
    def set_seed(self, seed: int) -> None:
        """Draw with another seed, 0..2**64 - 1, from the next step on. `params` then holds the new seed.

        `sequence_seed` derives seeds for several sequences from one seed.
        """
        lib.lzs_sampler_set_seed(self.handle, integer("seed", seed, 0, 2**64 - 1))
        self.params = copy(self.params)
        object.__setattr__(self.params, "seed", int(seed))  # This copy is frozen, but no other code has it yet.

    @one_thread
    def set_mask(self, words: npt.NDArray[np.uint32] | npt.NDArray[np.int32] | None, owner: MaskOwner = "user") -> None:
        """Allow only the tokens whose bit is 1, until the mask is set again; None removes the mask.

        ``words``: uint32 or int32[ceil(n_vocab / 32)], least significant bit first, as llguidance and xgrammar make
        them. The words are copied. ``owner``: "user" or "grammar". Each owner has a mask, and a token is allowed if
        both masks allow it.

        A `rewind` restores the masks of the position that it goes back to, unless they have changed more than 32
        times since then. In that case the next `sample` raises LzsError, unless a mask is set first.
        """
        if owner not in get_args(MaskOwner):
            raise ArgumentError(f"owner must be one of {', '.join(get_args(MaskOwner))}, got {owner!r}")
        if words is None:
            check(lib.lzs_set_mask(self.handle, _OWNERS[owner], ffi.NULL, 0))
        else:
            array = mask_array(words, self.n_vocab)
            check(lib.lzs_set_mask(self.handle, _OWNERS[owner], ffi.from_buffer("uint32_t[]", array), array.size))

    @one_thread
    def set_grammar(self, grammar: "Grammar | None") -> None:
        """Allow only what a grammar allows. The grammar's text begins with the next token. None removes the grammar.

        A token must be allowed by the grammar and by the masks. In each state the grammar allows a token with which the
        text can still be completed. The grammar allows an end token exactly when the text matches. If a token was
        accepted that the grammar does not allow, the grammar allows no further token.

        A `rewind` and a `clone` also restore the state of the grammar. A rewind to before the grammar was set removes
        the grammar. If another grammar was set before this one, `sample` then raises LzsError until a grammar is set.
        `reset` returns the grammar to its start state. Raises ValueError if the grammar was made for a vocabulary of
        another size.
        """
        from .constraint.grammar import Grammar

        if grammar is not None and not isinstance(grammar, Grammar):
            raise ArgumentTypeError(f"grammar must be a Grammar or None, got {grammar!r:.50}")
        if grammar is not None and grammar.vocabulary.n_vocab != self.n_vocab:
            raise ArgumentError(
                f"grammar must be for {self.n_vocab} tokens, but its vocabulary has {grammar.vocabulary.n_vocab}"
            )
        check(lib.lzs_sampler_set_grammar(self.handle, ffi.NULL if grammar is None else grammar.handle))
        self.grammar, self.in_use.also = grammar, None if grammar is None else grammar.in_use

    @one_thread
    def allowed(self) -> npt.NDArray[np.uint32] | None:
        """Return the tokens that grammar and masks allow next, uint32[ceil(n_vocab / 32)]; None means all tokens.

        The bits are as in `set_mask`. Raises LzsError if the current mask or grammar is unknown after a `rewind`, and
        if the grammar reaches a limit.
        """
        plan = ffi.new("lzs_plan *")
        status = lib.lzs_sampler_plan(self.handle, plan)
        if status:
            self.refuse(status, ())
        if not plan.mask:
            return None
        return np.frombuffer(ffi.buffer(plan.mask, (self.n_vocab + 31) // 32 * 4), np.uint32).copy()

    @one_thread
    def forced(self) -> int | None:
        """Return the only next token that grammar and masks allow; None if they allow several.

        `sample` picks this token for any logits. Raises like `allowed`.
        """
        status = lib.lzs_forced(self.handle, self._token)
        if status:
            self.refuse(status, ())
        token = int(self._token[0])
        return None if token < 0 else token

    # -- logits --

    @one_thread
    def edits(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        """Return the edits of the next step: (tokens int32[k] ascending, repeat float32[k], bias float32[k]).

        Penalties and ``logit_bias`` together make one edit for each token that they change. The edit turns the token's
        logit x into (x / repeat if x > 0 else x * repeat) + bias. A bias of -inf forbids the token. Raises LzsError if
        a grammar reaches a limit.
        """
        n = ffi.new("size_t *")
        edits = lib.lzs_edits(self.handle, n)
        if not n[0]:
            status = 0 if self.grammar is None else lib.lzs_sampler_plan(self.handle, ffi.new("lzs_plan *"))
            if status not in (lib.LZS_OK, lib.LZS_EMASKED):
                self.refuse(status, ())
            return np.empty(0, np.int32), np.empty(0, np.float32), np.empty(0, np.float32)
        rows = np.frombuffer(ffi.buffer(edits, n[0] * _EDIT.itemsize), _EDIT)
        tokens, repeat, bias = rows["token"], rows["repeat"], rows["bias"]
        order = tokens.argsort()  # Indexing with an array copies, so the result does not change with the sampler.
        kept = order[((repeat != 1) | (bias != 0))[order]]
        return tokens[kept], repeat[kept], bias[kept]

    def sample(self, logits: npt.ArrayLike) -> int:
        """Pick a token. ``logits``: [n_vocab] real numbers, read only; anything that numpy can make an array of.

        A contiguous float32 array is used in place. Everything else (another dtype, a list, a strided array) is copied
        once. Raises TypeError for values that are not numbers, ValueError for another shape and for NaN, and LzsError
        if no token is allowed.
        """
        row = self._row(logits)
        token = int(lib.lzs_try_sample(self.handle, row))
        return self._sampled(token, row) if token < 0 else token

    @one_thread
    def _sampled(self, status: int, row: Any) -> int:
        """If `lzs_try_sample` returned LZS_EBUSY, pick a token with `lzs_sample`; for any other error, raise.

        LZS_EBUSY means that the sampler has a grammar, or that this thread holds the sampler's lock.
        """
        if status == lib.LZS_EBUSY:
            status = lib.lzs_sample(self.handle, row, self._token)
        if status:
            self.refuse(status, row_of(row, self.n_vocab))
        return int(self._token[0])

    @one_thread
    def process(self, logits: npt.ArrayLike, out: npt.NDArray[np.float32] | None = None) -> npt.NDArray[np.float32]:
        """Apply edits, mask, temperature and truncation to the logits, and return them with -inf for removed tokens.

        ``logits``: as in `sample`. ``out``: float32[n_vocab], contiguous and writable, for the result. If ``out`` is
        None and ``logits`` is itself a contiguous, writable float32[n_vocab], the result overwrites ``logits``.
        Otherwise it goes into a new array. `sample` draws from the softmax of the result. Raises like `sample`, and
        then writes nothing.
        """
        row = logits_array(logits, self.n_vocab)
        written = row if out is None else output_array(out, self.n_vocab)
        if not written.flags.writeable:
            raise ArgumentError("logits must be writable: give an out, or process() writes there")
        if written.ctypes.data != row.ctypes.data and np.may_share_memory(row, written):
            raise ArgumentError("out must be logits itself or not overlap it, got a part of logits")
        status = lib.lzs_process(self.handle, ffi.from_buffer("float[]", row), ffi.from_buffer("float[]", written))
        if status:
            self.refuse(status, logits)
        return written

    @one_thread
    def distribution(self, logits: npt.ArrayLike) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        """Return the distribution that `sample` draws from: (ids int32[k] ascending, probabilities float32[k]).

        The probabilities have the sum 1. ``logits``: as in `sample`. Raises like `sample`.
        """
        ids = np.empty(self.n_vocab, np.int32)
        probabilities = np.empty(self.n_vocab, np.float32)
        n = ffi.new("size_t *")
        status = lib.lzs_distribution(
            self.handle,
            self._row(logits),
            ffi.from_buffer("int32_t[]", ids),
            ffi.from_buffer("float[]", probabilities),
            self.n_vocab,
            n,
        )
        if status:
            self.refuse(status, logits)
        return ids[: n[0]].copy(), probabilities[: n[0]].copy()

    def _row(self, logits: npt.ArrayLike) -> Any:
        return ffi.from_buffer("float[]", logits_array(logits, self.n_vocab))

    @one_thread
    def refuse(self, status: int, logits: npt.ArrayLike) -> None:
        """Raise the error that a C status stands for, after a step on these logits."""
        if status == lib.LZS_ENAN:
            nan = np.isnan(logits_array(logits, self.n_vocab))
            raise ArgumentError(f"logits[{int(nan.argmax())}] is nan ({int(nan.sum())} of {self.n_vocab} are)")
        if status == lib.LZS_EMASKED:
            if lib.lzs_sampler_plan(self.handle, ffi.new("lzs_plan *")) == status:
                raise LzsError("a mask or grammar of this position is not known after the rewind: set it again")
            words = self.allowed()
            if self.grammar is not None and words is not None and not words.any():
                raise LzsError("no token is allowed: a token was accepted that the grammar does not allow")
            raise LzsError("no token is allowed: every logit is -inf or masked")
        self._refuse_step(status)

    def _refuse_step(self, status: int) -> None:
        if status == lib.LZS_ELIMIT and self.grammar is not None and self.grammar.problem:
            raise LzsError(self.grammar.problem)
        check(status)

    def __repr__(self) -> str:
        return f"Sampler({self.n_vocab}, {self.params!r})"

    # -- a step of a decode loop, and its explanation --

    def step(self, logits: npt.NDArray[np.float32]) -> int:
        """Pick a token and add it to the text: `sample` and `accept` in one call into C.

        Takes and raises the same as `sample`; an error leaves the sampler unchanged.
        """
        return self.step_at(self._row(logits))[0]

    def step_at(self, logits: Any) -> tuple[int, bool]:
        """Do a `step` with logits outside numpy. Return (the token, whether the text now has a `loop` or is `stuck`).

        ``logits``: a ``float *`` of `lzsampler._ffi` to n_vocab numbers, which is not checked.
        """
        made = lib.lzs_try_step(self.handle, logits)  # 2 * token + 1 if a loop was found, or a negative error status
        if made < 0:
            made = self._made(made, logits)
        return made >> 1, made & 1 != 0

    @one_thread
    def _made(self, status: int, logits: Any) -> int:
        """If `lzs_try_step` returned LZS_EBUSY, step with `lzs_step`; for any other error status, raise.

        LZS_EBUSY means that the sampler has a grammar, or that this thread holds the sampler's lock.
        """
        token, looping = self._stepped
        if status == lib.LZS_EBUSY:
            status = lib.lzs_step(self.handle, logits, token, looping)
        if status:
            self.refuse(status, row_of(logits, self.n_vocab))
        return 2 * int(token[0]) + int(looping[0])

    @cached_property
    def _stepped(self) -> tuple[Any, Any]:
        """Memory in which `lzs_step` writes the token, and whether a loop was found."""
        return ffi.new("int32_t *"), ffi.new("int32_t *")

    @one_thread
    def explain(self, logits: npt.NDArray[np.float32], token: int | None = None, *, k: int = 5) -> "Explanation":
        """Return what the next step does to a token's logit and why; its ``str()`` is readable text.

        ``logits``: as for `sample`, read only. ``token``: None is the token that `sample` would pick. The ``k`` (0 or
        more) other tokens with the highest logits before the penalties are explained too. The call changes nothing, but
        takes much longer than a step. Raises the errors of `sample`, and ValueError for a token outside the vocabulary.
        """
        from .explanation import Explanation, explained

        row = self._row(logits)
        chosen = self.sample(logits) if token is None else integer("token", token, 0, self.n_vocab - 1)
        k = min(integer("k", k, 0, INT32_MAX), self.n_vocab)
        values = row_of(row, self.n_vocab)
        best = np.argsort(-values, kind="stable")[: k + 1].tolist()
        tokens = [chosen, *[other for other in best if other != chosen][:k]]
        made = ffi.new("lzs_explanation[]", len(tokens))
        status = lib.lzs_explain(self.handle, row, tokens, len(tokens), made)
        if status:
            self.refuse(status, values)
        one, *others = (explained(made[i]) for i in range(len(tokens)))
        return Explanation(self.position, one, tuple(others))


def refuse_tokens_outside(params: Params, n_vocab: int) -> None:
    """Raise ValueError for a token of ``params`` that is outside a vocabulary of ``n_vocab`` tokens."""
    biased: Any = params.logit_bias
    for field, tokens in (
        ("exempt", params.exempt),
        ("dry_breakers", params.dry_breakers),
        ("logit_bias", [token for token, _ in biased[-1:]]),
    ):
        for token in tokens[-1:]:  # The tokens are sorted, so the last one is the largest.
            if token >= n_vocab:
                raise ArgumentError(f"{field} must be tokens below {n_vocab}, the size of the vocabulary, got {token}")
    words = (n_vocab + 31) // 32
    for field in SEPARATORS:
        given = len(getattr(params, field)) // 4
        if given not in (0, words):
            raise ArgumentError(
                f"{field} must have {words} words of 4 bytes for a vocabulary of {n_vocab}, or none, got {given}"
            )


def sequence_seed(seed: int, sequence: int) -> int:
    """Derive a seed, 0..2**64 - 1, for sequence number ``sequence`` from the common ``seed`` of several sequences.

    Sequences with the same seed draw with the same noise, so the same prompt would give the same text each time.
    """
    number = integer("sequence", sequence, 0, 2**64 - 1)
    return int(lib.lzs_sequence_seed(integer("seed", seed, 0, 2**64 - 1), number))


def _replayed(kind: type[_S], n_vocab: int, params: Params, prompt: list[int], text: list[int]) -> _S:
    """Rebuild a pickled sampler from its settings, prompt and text, without the attributes that a subclass added."""
    sampler = object.__new__(kind)
    Sampler.__init__(sampler, n_vocab, params)
    sampler.prime(prompt)
    for token in text:
        sampler.accept(token)
    return sampler


def c_numbers(params: Params) -> Any:
    """Return an ``lzs_params *`` without the lists, which cannot change between steps."""
    p = ffi.new("lzs_params *")
    lib.lzs_params_init_size(p, ffi.sizeof("lzs_params"))
    for field in _NUMBERS:
        setattr(p, field, getattr(params, field))
    for field, names in CHOICES.items():
        setattr(p, field, names.index(getattr(params, field)))
    detection = params.repetition_detection
    if isinstance(detection, RepetitionDetection):
        p.loop_max_pattern = detection.max_pattern_size
        p.loop_min_pattern = detection.min_pattern_size
        p.loop_min_count = detection.min_count
    stuck = params.stuck_detection
    if isinstance(stuck, StuckDetection):
        p.stuck_threshold = stuck.threshold
        p.stuck_ngram = stuck.ngram_size
        p.stuck_min_count = stuck.min_count
        p.stuck_weight = stuck.weight
        p.stuck_window = stuck.window
    return p


def c_params(params: Params) -> tuple[Any, Any]:
    """Return (``lzs_params *``, the arrays that it points to). Keep the arrays as long as the pointer is in use."""
    p = c_numbers(params)
    arrays = {}
    for field, kind in _ARRAYS.items():
        values: Any = getattr(params, field)
        arrays[field] = ffi.new(kind, list(values) or 1)
        setattr(p, field, arrays[field])
        setattr(p, f"n_{field}", len(values))
    for field in SEPARATORS:
        words = getattr(params, field)
        arrays[field] = ffi.from_buffer("uint32_t[]", words)
        setattr(p, field, arrays[field])
        setattr(p, f"n_{field}", len(words) // 4)
    return p, arrays


_ARRAYS = {
    "exempt": "int32_t[]",
    "dry_breakers": "int32_t[]",
    "logit_bias": "lzs_logit_bias[]",
}
_NUMBERS = [f.name for f in fields(Params) if f.name not in (*CHOICES, *_ARRAYS, *SEPARATORS, *DETECTIONS)]


class _Held(InUse):
    """Lets only one thread at a time use a sampler.

    The lock is also held in C, so that calls made for every token need no check in Python.
    """

    def __init__(self, handle: Any) -> None:
        super().__init__("this Sampler", "give each thread a Sampler of its own")
        self._handle = handle

    def __enter__(self) -> None:
        super().__enter__()
        if len(self._entered) == 1 and lib.lzs_hold(self._handle):  # Another thread is in a call such as `sample`.
            super().__exit__()
            raise self.refusal()

    def __exit__(self, *_: object) -> None:
        if len(self._entered) == 1:
            lib.lzs_release(self._handle)
        super().__exit__()


def _owned(handle: Any) -> Any:
    return ffi.gc(handle, lib.lzs_sampler_free, lib.lzs_memory(handle))


def loop_found(handle: Any) -> Loop | None:
    """Return the loop of an ``lzs_sampler *``, like `Sampler.loop`. The handle may belong to a llama.cpp chain."""
    loop = ffi.new("lzs_loop *")
    return Loop(loop.start, loop.period, loop.count) if lib.lzs_loop_found(handle, loop) else None


def stuck_found(handle: Any) -> Stuck | None:
    """Return the stretch in which an ``lzs_sampler *`` is stuck, like `Sampler.stuck`."""
    stuck = ffi.new("lzs_stuck *")
    return Stuck(stuck.start, stuck.end) if lib.lzs_stuck_found(handle, stuck) else None


def lz_bits(
    history: Tokens, n_vocab: int, window: int = 512, buffer: int | None = None, formula: Formula = "rate"
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
    """Return the bits of the paper's LZ penalty after a history: (tokens int32[k] ascending, bits float32[k]).

    Tokens with 0 bits are left out. ``history``: int[n], oldest first; the last ``window`` (2..131072) tokens count.
    ``buffer``: longest suffix compared (1..4096, below the window; None is 32, or window - 1 if that is smaller). The
    penalty lowers a logit by strength * bits. If n <= buffer, all bits are 0. The rule comes from arXiv 2504.20131;
    docs/penalties.md gives its formulas.
    """
    n_vocab = integer("n_vocab", n_vocab, 1, MAX_VOCAB)
    array = token_array("history", history, n_vocab)
    window = integer("window", window, 2, MAX_WINDOW)
    buffer = integer("buffer", usual_buffer(window) if buffer is None else buffer, 1, MAX_BUFFER)
    if buffer >= window:
        raise ArgumentError(f"buffer must be below window ({window}), got {buffer}")
    if formula not in CHOICES["lz_formula"]:
        raise ArgumentError(f"formula must be one of {', '.join(CHOICES['lz_formula'])}, got {formula!r}")
    capacity = min(array.size, window)
    tokens, bits = np.empty(capacity, np.int32), np.empty(capacity, np.float32)
    n = ffi.new("size_t *")
    status = lib.lzs_lz_bits(
        ffi.from_buffer("int32_t[]", array),
        array.size,
        n_vocab,
        window,
        buffer,
        CHOICES["lz_formula"].index(formula),
        ffi.from_buffer("int32_t[]", tokens),
        ffi.from_buffer("float[]", bits),
        capacity,
        n,
    )
    check(status)
    order = np.argsort(tokens[: n[0]])
    return tokens[order], bits[order]
