"""Reports: each module writes one kind; `save` chooses the module by the ending of the file's name."""
