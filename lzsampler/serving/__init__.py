"""The penalties inside servers: programs of llama.cpp with a preloaded library, and llama_cpp.server with `LZLlama`."""
