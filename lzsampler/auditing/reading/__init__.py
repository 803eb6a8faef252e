"""Turns transcripts into records: shard.py finds files and cuts them, and read.py reads a shard (docs/formats.md).

A format is a module of ../formats with the interface of format.py. messages.py has the code that the formats share.
sniff.py recognises formats. decode.py and parquet.py unpack files.
"""
