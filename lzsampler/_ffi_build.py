"""Writes the C source of ``lzsampler._ffi`` from the marked section of ``c/lzsampler.h``; run by CMake.

The header is the only copy of the declarations: the compiler checks the extension against it, cffi reads its marked
section. ``python _ffi_build.py HEADER OUTPUT``
"""

import re
import sys
from pathlib import Path

from cffi import FFI


def cdef(header: str) -> str:
    """Return the declarations between the marks, as cffi's parser takes them."""
    parts = re.findall(r"/\* cdef-begin \*/(.*?)/\* cdef-end \*/", header, re.DOTALL)
    if not parts:
        raise SystemExit("the header has no cdef section")
    return re.sub(r"\bLZS_API\b", "", "\n".join(parts))


if __name__ == "__main__":
    header_path, output_path = map(Path, sys.argv[1:])
    ffi = FFI()
    ffi.cdef(cdef(header_path.read_text(encoding="utf-8")))
    ffi.set_source("lzsampler._ffi", '#include "lzsampler.h"')
    ffi.emit_c_code(str(output_path))
