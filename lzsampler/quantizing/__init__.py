"""Models in fewer bits: llama.cpp's own quantizer in a process of its own, and microscaling formats."""
