"""`Sample`: a text of an evaluation that a report shows, and how the texts to show are chosen."""

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from ..auditing.records import Audited
from ..auditing.summary import wasted_tokens
from .run_folder import Key

LOOPING_SAMPLES, OTHER_SAMPLES = 300, 100  # texts that are kept to be shown
_OF_A_SETTING = 25  # of each


@dataclass(frozen=True)
class Sample:
    """A text to show: ``record`` with its text and, if it loops, what was found in it; ``prompt`` comes before it."""

    record: Audited
    prompt: str


_Heap = list[tuple[int, int, Sample]]  # rank, -number of the line, text; the number keeps texts from being compared


class Samples:
    """The texts of a run that are shown, chosen one by one, in memory that does not grow with their number."""

    def __init__(self) -> None:
        self._looping: dict[str, _Heap] = {}  # by setting
        self._others: dict[str, _Heap] = {}

    def add(self, key: Key, audited: Audited, row: Mapping[str, Any]) -> None:
        """Keep a text if it is one of those to show so far."""
        if audited.looping:
            heap, rank = self._looping.setdefault(key[0], []), wasted_tokens(audited)
        elif row["repetition"]["loops"]:
            return  # it repeats from the reasoning on into the answer, and there is nothing to mark in either
        else:  # as good as drawn by chance, but the same in every run
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
        """Return looping texts, then others."""
        return (*_best(self._looping, LOOPING_SAMPLES), *_best(self._others, OTHER_SAMPLES))


def _best(heaps: Mapping[str, _Heap], most: int) -> list[Sample]:
    """Return the first of every setting before the second of any, at most ``most``, in the order of their rank."""
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
