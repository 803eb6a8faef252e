"""Reports: each module writes one kind; `writers` says which file ending stands for which of them."""
