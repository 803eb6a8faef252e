"""Reports: each module writes one kind; `lzsampler.util.writers` says which file ending stands for which of them."""
