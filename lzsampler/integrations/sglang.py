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
    if error.name != "sglang":  # SGLang is installed but broken, so its own message is shown.
        raise MissingExtra(f"SGLang does not load: {error}") from error
    raise missing("SGLang is needed for this", "sglang") from None

_REQUEST = "__req__"  # key in custom_params under which SGLang passes the request
_NO_REQUEST = "SGLang shows lzsampler no request, so lzsampler applies no penalty: send custom_params, at least {}"
_LATE = (
    "SGLang picks a token before it shows lzsampler the previous one, so lzsampler applies no penalty: start SGLang "
    "with --disable-overlap-schedule, or with SGLANG_ENABLE_DELAY_SAMPLE=1"
)
_DRAFTS = "SGLang shows lzsampler no drafts, so lzsampler applies no penalty with speculative decoding"


@dataclass
class _Text:
    request: Request | None  # None if the settings are wrong


class LZProcessor(CustomLogitProcessor):
    """The penalties of `lzsampler.Params` for requests whose ``custom_logit_processor`` is this class's ``to_str()``.

    ``to_str()`` names the class but does not contain its code, so the server needs lzsampler, too. The settings are in
    the ``custom_params`` of a request (docs/engines.md). A request must have ``custom_params``; {} gives the default
    penalty. SGLang does not ask a processor when a request arrives. So if the settings of a request are wrong, this
    class logs the error and applies no penalty. It also applies no penalty if SGLang does not show the tokens in time.
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
        if len(set(map(id, texts.values()))) < len(texts):  # A text has several rows, so it has drafts.
            warn_once(_DRAFTS)
            return logits
        edits = [request.edits() for request in texts.values()]
        apply_edits(logits, list(texts), edits, [request.params.sign_aware for request in texts.values()])
        return logits

    def _text(self, arguments: Mapping[str, Any] | None, n_vocab: int) -> Request | None:
        """Return the `Request` of a row with all tokens of the row's text, or None if the row gets no penalty."""
        req = None if arguments is None else arguments.get(_REQUEST)
        if req is None or arguments is None:
            warn_once(_NO_REQUEST)
            return None
        text = getattr(req, "_lzsampler", None)
        if text is None:
            text = req._lzsampler = _Text(self._begin(req, arguments, n_vocab))
        output = req.output_ids
        fed = getattr(getattr(req, "kv", req), "kv_committed_len", 0)  # number of tokens before these logits
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
