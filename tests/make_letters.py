"""Writes c/letters.h: the letters, marks and numbers of Unicode, for pre-tokenizers and for separators.

python tests/make_letters.py
"""

import sys
import unicodedata
from pathlib import Path

HEADER = Path(__file__).parents[1] / "c" / "letters.h"

BEFORE = """/* letters.h - the letters, marks and numbers of Unicode {version}. Written by tests/make_letters.py. */
#ifndef LZS_LETTERS_H
#define LZS_LETTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* clang-format off */
"""

AFTER = """/* clang-format on */

static inline bool lzs_in_ranges(uint32_t code, const uint32_t (*ranges)[2], size_t n) {
    size_t low = 0, high = n;
    while (low < high) { /* the first range that does not end before the code point */
        size_t middle = low + (high - low) / 2;
        if (ranges[middle][1] < code) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < n && ranges[low][0] <= code;
}

static inline bool lzs_is_white(uint32_t code) {
    return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xA0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F || code == 0x205F ||
           code == 0x3000;
}

#endif
"""


def ranges(kind: str) -> list[tuple[int, int]]:
    """Return the ranges of the code points whose category begins with a letter."""
    found: list[tuple[int, int]] = []
    for code in range(sys.maxunicode + 1):
        if unicodedata.category(chr(code))[0] != kind:
            continue
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return found


def table(name: str, kind: str) -> str:
    """Return a table of C."""
    found = ranges(kind)
    items = [f"{{0x{first:X}, 0x{last:X}}}" for first, last in found]
    lines = [", ".join(items[i : i + 5]) for i in range(0, len(items), 5)]
    rows = "".join(f"    {line},\n" for line in lines)
    return (
        f"enum {{ LZS_N_{name.upper()}_RANGES = {len(found)} }};\n"
        f"static const uint32_t lzs_{name}_ranges[LZS_N_{name.upper()}_RANGES][2] = {{\n{rows}}};\n"
    )


if __name__ == "__main__":
    text = BEFORE.format(version=unicodedata.unidata_version)
    HEADER.write_text(text + table("letter", "L") + table("mark", "M") + table("number", "N") + AFTER, encoding="utf-8")
