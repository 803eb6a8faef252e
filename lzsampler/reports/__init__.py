"""Reports: each module writes one type of report; `save` chooses the module by the ending of the file's name."""
