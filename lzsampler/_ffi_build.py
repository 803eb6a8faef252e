"""Writes the C source of ``lzsampler._ffi``. CMake runs it as ``python _ffi_build.py HEADER... OUTPUT``.

cffi reads the declarations between the comments cdef-begin and cdef-end of the public C headers. The compiler checks
the extension against the same headers. A header must come after the headers whose types it uses.
"""

import re
import sys
from pathlib import Path

from cffi import FFI


def cdef(header: Path) -> str:
    """Return the declarations between cdef-begin and cdef-end in a header, in a form that cffi's parser accepts."""
    parts = re.findall(r"/\* cdef-begin \*/(.*?)/\* cdef-end \*/", header.read_text(encoding="utf-8"), re.DOTALL)
    if not parts:
        raise SystemExit(f"{header.name} has no cdef section")
    return re.sub(r"\bLZS_API\b", "", "\n".join(parts))


if __name__ == "__main__":
    *headers, output = map(Path, sys.argv[1:])
    ffi = FFI()
    for path in headers:
        ffi.cdef(cdef(path))
    ffi.set_source("lzsampler._ffi", "\n".join(f'#include "{path.name}"' for path in headers))
    ffi.emit_c_code(str(output))
