"""`Sample`: a text of an evaluation that a report shows. `Samples`: chooses these texts."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from ..auditing.records import Audited
from ..auditing.summary import wasted_tokens
from .run_folder import Key

LOOPING_SAMPLES, OTHER_SAMPLES = 300, 100  # maximum numbers of texts in a report
_OF_A_SETTING = 25  # maximum number of looping texts, and of other texts, from one setting


@dataclass(frozen=True)
class Sample:
    """A text to show. ``record``: the text and, if it loops, its findings. ``prompt``: the text's prompt."""

    record: Audited
    prompt: str


_Heap = list[tuple[int, int, Sample]]  # (rank, -line number, text); line numbers differ, so texts are never compared


class Samples:
    """Chooses the texts of a run that a report shows. Its memory does not grow with the number of texts."""

    def __init__(self) -> None:
        self._looping: dict[str, _Heap] = {}  # name of a setting -> texts
        self._others: dict[str, _Heap] = {}

    def add(self, key: Key, audited: Audited, row: Mapping[str, Any]) -> None:
        """Keep a text if it ranks among the texts to show."""
        if audited.looping:
            heap, rank = self._looping.setdefault(key[0], []), wasted_tokens(audited)
        elif row["repetition"]["loops"]:
            return  # the loop spans reasoning and answer, so a report could mark it in neither field
        else:  # the rank is a hash, so the choice is pseudo-random but the same in every run
            name = "\0".join(map(str, key)).encode("utf-8", "surrogatepass")
            heap, rank = (
                self._others.setdefault(key[0], []),
                int.from_bytes(blake2b(name, digest_size=8).digest(), "big"),
            )
        if len(heap) < _OF_A_SETTING:
            heapq.heappush(heap, (rank, -audited.number, Sample(audited, _prompt(row))))
        elif (rank, -audited.number) > heap[0][:2]:
            heapq.heapreplace(heap, (rank, -audited.number, Sample(audited, _prompt(row))))

    def chosen(self) -> tuple[Sample, ...]:
        """Return the chosen texts, looping texts first."""
        return (*_best(self._looping, LOOPING_SAMPLES), *_best(self._others, OTHER_SAMPLES))


def _best(heaps: Mapping[str, _Heap], most: int) -> list[Sample]:
    """Return at most ``most`` texts, ordered by rank.

    The first text of every setting is chosen before the second text of any setting.
    """
    placed = [
        (place, -rank, -order, sample)
        for heap in heaps.values()
        for place, (rank, order, sample) in enumerate(sorted(heap, key=lambda item: item[:2], reverse=True))
    ]
    kept = sorted(placed, key=lambda item: item[:3])[:most]
    return [sample for *_, sample in sorted(kept, key=lambda item: item[1:3])]


def _prompt(row: Mapping[str, Any]) -> str:
    if "prompt" in row:
        return str(row["prompt"])
    return "\n\n".join(str(message.get("content", "")) for message in row["messages"][:-1])
