"""`LZProcessor`: the penalties in vLLM, through both of its interfaces for logits processors.

Model Runner V2 keeps the tokens of all requests on the device. A request with drafts to verify has several rows. The
older runner, V1, passes the token lists of its requests and reports which requests change rows. Facts about both
runners are from vLLM 0.32.0 and 0.33.0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from ..errors import MissingExtra, missing
from ..params import Params, reach
from .history import Edits, Request
from .logit_rows import apply_edits
from .request_settings import TokenSets, request_params
from .tokenizer import LOG, separators_of_server, warn_once

try:
    from vllm.v1.sample.logits_processor import LogitsProcessor as ForV1
    from vllm.v1.sample.logits_processor import MoveDirectionality
except ImportError as error:
    if error.name != "vllm":  # vLLM is installed but broken or too old, so its own message is shown.
        raise MissingExtra(f"vLLM does not load: {error}") from error
    raise missing("vLLM is needed for this", "vllm") from None
try:
    from vllm.v1.worker.gpu.sample.logits_processor import LogitsProcessor as ForV2
except ImportError:

    class ForV2:  # type: ignore[no-redef]
        """Replaces the interface of Model Runner V2 if this vLLM is too old to have it."""


_UNKNOWN_TOKENS = (
    "vLLM hides the last tokens from lzsampler, so lzsampler applies no penalty: start vLLM with "
    "--logits-processors lzsampler.integrations.vllm:LZProcessor, or with --no-async-scheduling"
)


@dataclass
class _Text:
    """A request that has penalties. V1 passes its tokens. With V2, lzsampler finds them by the request's slot."""

    params: Params
    prompt: Sequence[int] = ()
    output: Sequence[int] = ()
    request: Request | None = None  # None until the size of the vocabulary is known


class LZProcessor(ForV1, ForV2):
    """The penalties of `lzsampler.Params` for the requests that ask for them in ``SamplingParams.extra_args``.

    Over HTTP these arguments are ``vllm_xargs``; docs/engines.md lists them. A request without these arguments gets no
    penalty. vLLM makes the object itself. If both an installed package and ``--logits-processors`` name the class, vLLM
    makes two objects; then only the last object of an engine changes logits.
    """

    def __init__(self, vllm_config: Any, device_or_states: Any, is_pin_memory: bool | None = None) -> None:
        self._config = vllm_config
        self._states: Any = device_or_states if is_pin_memory is None else None  # V2's states of the requests
        self._texts: dict[int, _Text] = {}  # row (V1) or slot (V2) -> request
        _LAST[id(vllm_config)] = self

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Raise a ValueError of one line that names the field, if lzsampler cannot apply the settings of a request."""
        request_params(sampling_params.extra_args, "vLLM")

    # -- V1 --

    def is_argmax_invariant(self) -> bool:
        """Return False, because a penalty can change which token is the best."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Track which request is in which row. V1 first removes, then adds, then moves requests."""
        if batch_update is None:
            return
        for row in batch_update.removed:
            self._texts.pop(row, None)
        for row, sampling_params, prompt, output in batch_update.added:
            self._texts.pop(row, None)
            if params := self._params(sampling_params):
                self._texts[row] = _Text(params, prompt or (), output)
        for row, other, way in batch_update.moved:
            moved, replaced = self._texts.pop(row, None), self._texts.pop(other, None)
            if moved is not None:
                self._texts[other] = moved
            if replaced is not None and way == MoveDirectionality.SWAP:
                self._texts[row] = replaced

    def _edits_of_v1(self, n_vocab: int) -> dict[int, tuple[Request, Edits]]:
        edits = {}
        for row, text in list(self._texts.items()):
            request = self._begin(row, text, n_vocab) if text.request is None else text.request
            if request is None:
                continue
            if request.follow(text.output):
                edits[row] = request, request.edits()
            else:  # Asynchronous scheduling writes -1 for new tokens, unless start options name the processor.
                warn_once(_UNKNOWN_TOKENS)
        return edits

    # -- Model Runner V2 --

    def add_request(self, req_idx: int, sampling_params: Any) -> bool:
        """Begin a request in a slot, and return whether it has penalties."""
        self._texts.pop(req_idx, None)
        if params := self._params(sampling_params):
            self._texts[req_idx] = _Text(params)
        return req_idx in self._texts

    def _edits_of_v2(self, n_vocab: int, ctx: Any) -> dict[int, tuple[Request, Edits]]:
        """Return row -> edits. In the row of a draft token, the draft tokens before it count as part of the text.

        Only the device has the tokens of the rows, so the host waits for the device once per step. The host waits a
        second time if a request begins and its prompt counts, if a request resumes with generated tokens, or if drafts
        of a request were accepted.
        """
        import torch

        table = torch.stack([ctx.expanded_idx_mapping.long(), ctx.pos.long(), ctx.input_ids.long()])
        slots, places, tokens = table.tolist()
        first = [row for row, slot in enumerate(slots) if slot in self._texts and (row == 0 or slots[row - 1] != slot)]
        known: dict[int, int] = {}  # row -> index from which the tokens of the row's text must be fetched
        for row in first:
            text, slot = self._texts[slots[row]], slots[row]
            prompt = int(self._states.prompt_len.np[slot])
            if places[row] + 1 < int(self._states.prefill_len.np[slot]):
                continue  # The row is within a prompt, so vLLM discards its pick.
            if text.request is None:
                known[row] = 0 if text.params.history == "all" else prompt
            else:
                text.request.rewind(max(0, len(text.request) - (places[row] + 1 - prompt)))
                known[row] = prompt + len(text.request)
        fetched = self._fetch({row: (slots[row], start, places[row] + 1) for row, start in known.items()}, tokens)
        edits = {}
        for row, new in fetched.items():
            text, slot = self._texts[slots[row]], slots[row]
            if text.request is None:
                n = int(self._states.prompt_len.np[slot]) - known[row]
                text.prompt, new = new[:n], new[n:]
                if self._begin(slot, text, n_vocab) is None:
                    continue
            request, drafts = text.request, 0
            assert request is not None
            if not all(request.accept(token) for token in new):
                continue
            while True:
                edits[row + drafts] = request, request.edits()
                at = row + drafts + 1
                if at == len(slots) or slots[at] != slot or not request.accept(tokens[at]):
                    break
                drafts += 1
            request.rewind(drafts)
        return edits

    def _fetch(self, ranges: dict[int, tuple[int, int, int]], tokens: list[int]) -> dict[int, list[int]]:
        """Return, for each row, the tokens in its range (slot, start, end) of the texts on the device.

        ``tokens``: the input token of each row. In a usual step, only this token is missing.
        """
        import torch

        found = {row: [tokens[row]] * (end - start) for row, (_, start, end) in ranges.items() if end - start <= 1}
        rest = {row: where for row, where in ranges.items() if row not in found}
        if rest:
            every = self._states.all_token_ids.gpu
            slots = np.concatenate([np.full(end - start, slot) for slot, start, end in rest.values()])
            places = np.concatenate([np.arange(start, end) for _, start, end in rest.values()])
            index = torch.from_numpy(np.stack([slots, places])).to(every.device)
            values = iter(every[index[0], index[1]].tolist())
            for row, (_, start, end) in rest.items():
                found[row] = [next(values) for _ in range(start, end)]
        return found

    # -- both --

    def apply(self, logits: Any, ctx: Any = None) -> Any:
        """Apply penalties in place to the rows of requests that have penalties, and return ``logits``.

        ``logits``: float32[rows, n_vocab], a torch tensor on any device. ``ctx``: the batch of V2, None in V1.
        """
        if _LAST.get(id(self._config)) is not self or not self._texts:
            return logits
        if ctx is None:
            edits = self._edits_of_v1(logits.shape[1])
        elif self._texts.keys().isdisjoint(ctx.idx_mapping_np.tolist()):
            return logits
        else:
            edits = self._edits_of_v2(logits.shape[1], ctx)
        aware = [request.params.sign_aware for request, _ in edits.values()]
        apply_edits(logits, list(edits), [row for _, row in edits.values()], aware)
        return logits

    def _params(self, sampling_params: Any) -> Params | None:
        """Return the settings of a request if they have an effect, else None.

        Bad settings are logged and give None, because they must not end a server.
        """
        try:
            params = request_params(getattr(sampling_params, "extra_args", None), "vLLM", self._separators)
        except ValueError as error:  # If vLLM calls validate_params, it has refused bad settings already.
            LOG.warning("lzsampler leaves a request alone: %s", error)
            return None
        return params if params is not None and reach(params) else None

    def _begin(self, key: int, text: _Text, n_vocab: int) -> Request | None:
        """Make and return the `Request` of a text. If its settings do not fit the vocabulary, forget the text."""
        try:
            text.request = Request(n_vocab, text.params, text.prompt)
        except ValueError as error:
            LOG.warning("lzsampler leaves a request alone: %s", error)
            del self._texts[key]
        return text.request

    def _separators(self) -> TokenSets:
        try:
            from vllm.tokenizers import cached_tokenizer_from_config

            tokenizer = cached_tokenizer_from_config(self._config.model_config)
        except Exception as error:  # If the model's tokenizer is unusual, vLLM may raise anything.
            warn_once(f"lzsampler cannot load the tokenizer ({error})")
            tokenizer = None
        return separators_of_server(tokenizer)


_LAST: WeakValueDictionary[int, LZProcessor] = WeakValueDictionary()  # id of an engine's configuration -> last object
