"""`LZProcessor`: the penalties in SGLang, as a custom logit processor. Facts are from SGLang 0.5.23."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import MissingExtra, missing
from .history import Request
from .logit_rows import apply_edits
from .request_settings import NAME, request_params
from .tokenizer import LOG, separators_of_server, warn_once

try:
    from sglang.srt.sampling.custom_logit_processor import CustomLogitProcessor
except ImportError as error:
    if error.name != "sglang":  # SGLang is installed but broken: show its own message
        raise MissingExtra(f"SGLang does not load: {error}") from error
    raise missing("SGLang is needed for this", "sglang") from None

_REQUEST = "__req__"  # the key under which SGLang passes the request, if it came with custom_params
_NO_REQUEST = "SGLang shows lzsampler no request, so lzsampler applies no penalty: send custom_params, at least {}"
_LATE = (
    "SGLang picks a token before it shows lzsampler the previous one, so lzsampler applies no penalty: start it with "
    "--disable-overlap-schedule, or with SGLANG_ENABLE_DELAY_SAMPLE=1"
)
_DRAFTS = "SGLang shows lzsampler no drafts, so lzsampler applies no penalty with speculative decoding"


@dataclass
class _Text:
    request: Request | None  # None if lzsampler refused its settings


class LZProcessor(CustomLogitProcessor):
    """The penalties of `lzsampler.Params` for requests whose ``custom_logit_processor`` is this class's ``to_str()``.

    ``to_str()`` names the class but does not contain it, so the server needs lzsampler, too. The settings are in the
    ``custom_params`` of a request. A request must have ``custom_params``: {} gives the default penalty. docs/engines.md
    lists the settings. If the settings of a request are wrong, this class logs the error and leaves the request alone,
    because SGLang does not ask a processor when a request arrives. It also leaves a request alone if SGLang does not
    show its tokens in time.
    """

    def __call__(self, logits: Any, custom_param_list: Sequence[Mapping[str, Any] | None] | None = None) -> Any:
        """Apply the penalties in place, and return ``logits``.

        ``logits``: a floating-point torch tensor, [rows, n_vocab], on any device. ``custom_param_list``: the
        ``custom_params`` of each row's request.
        """
        arguments = custom_param_list or ()
        if len(arguments) != len(logits):
            warn_once(_DRAFTS if arguments else _NO_REQUEST)
            return logits
        texts: dict[int, Request] = {}
        for row, given in enumerate(arguments):
            request = self._text(given, logits.shape[1])
            if request is not None:
                texts[row] = request
        if len(set(map(id, texts.values()))) < len(texts):  # several rows of one text
            warn_once(_DRAFTS)
            return logits
        edits = [request.edits() for request in texts.values()]
        apply_edits(logits, list(texts), edits, [request.params.sign_aware for request in texts.values()])
        return logits

    def _text(self, arguments: Mapping[str, Any] | None, n_vocab: int) -> Request | None:
        """Return the sampler of a row, with all tokens of its request; None if the row is to be left alone."""
        req = None if arguments is None else arguments.get(_REQUEST)
        if req is None or arguments is None:
            warn_once(_NO_REQUEST)
            return None
        text = getattr(req, "_lzsampler", None)
        if text is None:
            text = req._lzsampler = _Text(self._begin(req, arguments, n_vocab))
        output = req.output_ids
        fed = getattr(getattr(req, "kv", req), "kv_committed_len", 0)  # the number of tokens before these logits
        if fed > len(req.origin_input_ids) + len(output):
            warn_once(_LATE)
            return None
        followed: Request | None = text.request
        return followed if followed is not None and followed.follow(output) else None

    @staticmethod
    def _begin(req: Any, arguments: Mapping[str, Any], n_vocab: int) -> Request | None:
        try:
            tokenizer = getattr(req, "tokenizer", None)
            params = request_params(arguments, "SGLang", lambda: separators_of_server(tokenizer))
            if params is None:
                params = request_params({NAME: {}}, "SGLang", lambda: separators_of_server(tokenizer))
            return Request(n_vocab, params, req.origin_input_ids) if params is not None else None
        except ValueError as error:
            LOG.warning("lzsampler leaves a request alone: %s", error)
            return None
