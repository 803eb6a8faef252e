"""Transcripts of every kind to records: `find` cuts files into shards, `read` reads one (docs/formats.md).

A reader a file behind the interface of format.py; messages.py has what they share. shard.py finds and cuts, sniff.py
tells formats apart, decode.py and parquet.py unpack, read.py makes records.
"""

from ..formats import FORMATS
from .read import read
from .shard import Shard, find

__all__ = ["FORMATS", "Shard", "find", "read"]
