"""`audit_texts`: audits texts that are in memory, and returns loop rates with confidence intervals."""

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..errors import ArgumentTypeError
from .findings import Tokenizer, audit_record
from .reading.messages import scalar
from .records import Record, fields_of
from .rules import RuleOptions, Rules, names, takes_rules
from .summary import Summary

if TYPE_CHECKING:
    from typing_extensions import Unpack


@takes_rules
def audit_texts(
    texts: Iterable[str | tuple[str, Mapping[str, object]]],
    *,
    by: str | Sequence[str] = (),
    tokenizer: Tokenizer | None = None,
    **rules: "Unpack[RuleOptions]",
) -> Summary:
    """Audit texts one after the other in this process, and return the same figures as `audit_files`.

    For the confidence intervals, each text counts as a separate conversation. (In files, records that share an id count
    as one conversation.)

    ``texts``: strings, or pairs of a string and a mapping of its properties, such as ``(text, {"model": "a", "seed":
    1})``. Texts are read one by one and not kept. Reasoning between a model's tags, such as ``<think>``, is audited as
    a separate field, as in files.

    ``by``: one or more keys of the mappings; they group the summary. If a text lacks a key, the text is in the group
    "". If all texts lack a key, a UserWarning names the key. ``tokenizer``: as for `lzsampler.audit`. ``rules``: the
    fields of `Rules`.

        summary = audit_texts((row.text, {"model": row.model}) for row in rows, by="model")
        summary.loop_rate, wilson(summary.total.looping, summary.total.records)   # wilson of lzsampler.util.stats

    ``summary.worst`` names texts by their number in ``texts``, from 0. TypeError for an element that is neither a text
    nor a pair of a text and a mapping; ValueError for settings out of range.
    """
    if isinstance(texts, str):
        raise ArgumentTypeError("texts must be a list of texts, got one text: put it in a list, or use lzsampler.audit")
    settings = Rules(**rules)  # type: ignore[arg-type] # Rules turns a single value into a tuple
    settings.check_tokenizer(tokenizer)
    keys = names(by)
    found = Summary({}, keys)
    for number, item in enumerate(texts):
        text, about = item if isinstance(item, tuple) and len(item) == 2 else (item, {})
        if not isinstance(text, str) or not isinstance(about, Mapping):
            raise ArgumentTypeError(
                f"texts[{number}] must be a text or a pair of a text and a mapping, got {item!r:.100}"
            )
        groups = {name: told for name, value in about.items() if (told := scalar(value)) is not None}
        record = Record("", number, str(number), fields_of(text), groups)
        found.add(audit_record(record, settings, tokenizer))
    whole = Summary(json.loads(json.dumps(asdict(settings))), keys)
    whole.merge(found)
    for key in whole.absent:
        warnings.warn(f"by={key!r}: no text has {key!r}", stacklevel=3)  # `takes_rules` adds a frame
    return whole
