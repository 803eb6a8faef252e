"""Transcripts of every kind to records: shard.py finds files and cuts them, read.py reads a shard (docs/formats.md).

A format is a file of ../formats behind the interface of format.py; messages.py has what they share. sniff.py recognises
formats, decode.py and parquet.py unpack.
"""
