"""Quantizes models with llama.cpp's quantizer, also to microscaling formats."""
