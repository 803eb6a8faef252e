"""`Clusters`: counts the records of each conversation, for confidence intervals of dependent records."""

from array import array
from hashlib import blake2b
from operator import gt
from typing import Literal

import numpy as np
import numpy.typing as npt

from ..errors import ArgumentError
from ..util.clustered import clustered
from ..util.stats import Interval
from .records import Audited

Property = Literal["looping", "literal", "stuck"]
_COLUMNS = ("records", "looping", "literal", "stuck")


def key_of(audited: Audited) -> int:
    """Return a 64-bit hash of a record's conversation.

    The probability that two of a million conversations have the same hash is 3e-8.
    """
    name = f"{audited.file}\0{audited.conversation or audited.id}".encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big")


class Clusters:
    """For each conversation, the number of its records, and the number of records with each `Property`.

    Consecutive records of one conversation share an entry of 24 bytes. A conversation may have several entries, which
    are added up when the counts are read.
    """

    def __init__(self) -> None:
        self._keys = array("Q")
        self._sums: tuple[array[int], ...] = tuple(array("I") for _ in _COLUMNS)
        self._added_up: dict[str, npt.NDArray[np.int64]] | None = None

    def __bool__(self) -> bool:
        return bool(self._keys)

    def add(self, key: int, looping: bool, literal: bool, stuck: bool) -> None:
        """Count a record of the conversation ``key``."""
        self._added_up = None
        records, loops, literals, stucks = self._sums
        if self._keys and self._keys[-1] == key:
            records[-1] += 1
            loops[-1] += looping
            literals[-1] += literal
            stucks[-1] += stuck
        else:
            self._keys.append(key)
            records.append(1)
            loops.append(looping)
            literals.append(literal)
            stucks.append(stuck)

    def merge(self, other: "Clusters") -> None:
        """Add the counts of ``other``."""
        self._added_up = None
        self._keys.extend(other._keys)
        for ours, theirs in zip(self._sums, other._sums, strict=True):
            ours.extend(theirs)

    @property
    def conversations(self) -> int:
        """The number of conversations. If all records are independent, this is the number of records."""
        return int(self._by_conversation()["records"].size)

    def interval(self, of: Property) -> Interval:
        """Return the confidence interval of the share of records with a property (`lzsampler.util.clustered`)."""
        sums = self._by_conversation()
        return clustered(sums[of], sums["records"])

    def _by_conversation(self) -> dict[str, npt.NDArray[np.int64]]:
        """Return the counts by name: "records" and each property. Each int64[m] has a count for each conversation."""
        if self._added_up is None:
            keys, place = np.unique(np.array(self._keys, np.uint64), return_inverse=True)
            self._added_up = {
                name: np.bincount(place, np.array(column, np.uint32), keys.size).astype(np.int64)
                for name, column in zip(_COLUMNS, self._sums, strict=True)
            }
        return self._added_up

    def pack(self) -> list[list[int]]:
        """Return the entries, ready for JSON."""
        return [list(self._keys), *(list(column) for column in self._sums)]

    @classmethod
    def unpack(cls, packed: list[list[int]]) -> "Clusters":
        """Return the `Clusters` that were packed by `pack`. ValueError or TypeError for anything else."""
        made = cls()
        keys, *columns = packed
        try:
            made._keys.extend(keys)
            for ours, column in zip(made._sums, columns, strict=True):
                ours.extend(column)
        except OverflowError as error:
            raise ArgumentError("a count is out of range") from error
        records, *properties = made._sums
        if len(records) != len(keys) or any(
            len(column) != len(keys) or any(map(gt, column, records)) for column in properties
        ):
            raise ArgumentError("the counts do not belong together")
        return made
