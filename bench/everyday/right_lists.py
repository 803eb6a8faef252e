"""Writes the set `lists` of the package as files: right texts on which a penalty for frequent words costs the most.

    python bench/everyday/right_lists.py FOLDER

Each kind has a folder of its own. `lzs cost -m smollm2 --set lists` measures on the same texts without the files.
"""

import argparse
from collections import Counter
from pathlib import Path

from lzsampler.evaluation.right_texts import set_texts


def main() -> None:
    """Write the texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="where the texts are written")
    folder: Path = parser.parse_args().folder
    written: Counter[str] = Counter()
    for each in set_texts("lists"):
        path = folder / each.kind / f"{written[each.kind]}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(each.text, encoding="utf-8", newline="\n")
        written[each.kind] += 1


if __name__ == "__main__":
    main()
