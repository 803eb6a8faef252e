"""Quantization of models: runs llama.cpp's quantizer in another process, with microscaling formats."""
