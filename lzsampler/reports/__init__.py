"""Reports: each module writes one kind; `save` says which file ending stands for which of them."""
