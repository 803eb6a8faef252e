"""Makes other pages of the repository's Markdown: those of the documentation site, and the one of a package index.

As a hook of mkdocs it puts README.md, CONTRIBUTING.md, c/README.md and others among the pages of docs/. Links to files
that are not on the site become plain text, since the repository has no public address yet.

    python docs/pages.py README.md > INDEX.md      # without pictures and relative links, for a package index
"""

import posixpath
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {  # file of the repository: page of the site, beside those of docs/
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "c/README.md": "c.md",
    "bench/README.md": "benches.md",
    "lzsampler/models/README.md": "models.md",
}
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_PICTURE = re.compile(r"<picture>.*?</picture>|<img [^>]*>", re.DOTALL)
_SOURCE = re.compile(r'((?:src|srcset)=")([^"]+)(")')


def relinked(text: str, place: Callable[[str], str | None]) -> str:
    """Return Markdown with every relative address replaced by its ``place``; None makes a link its own text.

    Blocks of code keep theirs.
    """

    def link(match: re.Match[str]) -> str:
        mark, words, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match[0]
        path, _, anchor = target.partition("#")
        found = place(path)
        if found is None:
            return "" if mark else words
        return f"{mark}[{words}]({found}{anchor and '#' + anchor})"

    def source(match: re.Match[str]) -> str:
        return f"{match[1]}{place(match[2]) or match[2]}{match[3]}"

    prose = _CODE.split(text)
    changed = [_SOURCE.sub(source, _LINK.sub(link, part)) for part in prose]
    code = [*_CODE.findall(text), ""]
    return "".join(part + block for part, block in zip(changed, code, strict=True))


def site_page(path: str) -> str | None:
    """Return the page or picture of the site that a file of the repository is; None: it is neither.

    A file that does not exist is returned as it is, so that mkdocs complains.
    """
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return None if (ROOT / path).exists() else path


def index_page(text: str) -> str:
    """Return a README for a page of a package index, whose host has none of the files that it shows or links to."""
    text = re.sub(r"^## Documentation\n.*?(?=^## |\Z)", "", _PICTURE.sub("", text), flags=re.MULTILINE | re.DOTALL)
    for part in set(re.findall(r"\s\((?:\[[^\]]*\]\([^)\s]+\)(?:,\s)?)+\)", text)):
        if "://" not in part:  # a link in brackets, which would be left as words that point nowhere
            text = text.replace(part, "")
    text = re.sub(r'pip install "\.(\[\w+\])".*', r'pip install "lzsampler\1"', text)  # not in a checkout
    return re.sub(r"\n{3,}", "\n\n", relinked(text, lambda _: None)).strip() + "\n"


# ---- hooks of mkdocs ----


def on_files(files: "Files", *, config: "MkDocsConfig", **_: Any) -> "Files":
    """Add the pages that do not lie in docs/."""
    from mkdocs.structure.files import File

    for source, page in PAGES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, *, page: "Page", **_: Any) -> str:
    """Point the links of a page to where the site has their files."""
    sources = {there: here for here, there in PAGES.items()}
    here = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def place(path: str) -> str | None:
        found = site_page(posixpath.normpath(posixpath.join(posixpath.dirname(here), path)))
        return found and posixpath.relpath(found, posixpath.dirname(page.file.src_uri) or ".")

    return relinked(markdown, place)


if __name__ == "__main__":
    sys.stdout.write(index_page(Path(sys.argv[1]).read_text(encoding="utf-8")))
