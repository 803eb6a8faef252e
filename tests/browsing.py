"""Headless Chromium, a server that counts what it is asked for, and texts that would run or fetch something."""

import re
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any


@contextmanager
def counting_server() -> Iterator[tuple[str, list[str]]]:
    """A server that anything may be asked of; yields its address and what was."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


def dom(browser: str, address: str, profile: Path) -> str:
    command = [
        browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
        f"--user-data-dir={profile}", "--virtual-time-budget=3000", "--dump-dom", address,
    ]  # fmt: skip
    done = subprocess.run(command, check=True, capture_output=True, timeout=120)
    return done.stdout.decode("utf-8", "replace")


def attacks(server: str) -> list[str]:
    run = "document.documentElement.dataset.pwned=1;document.title='pwned'"
    return [
        f"</script><script>{run}</script>",
        f"<script src={server}/a.js></script>",
        f'<img src="{server}/b.png" onerror="{run}" onload="{run}">',
        f"<svg onload=\"{run}\"><image href='{server}/c.png'/></svg>",
        f"<style>@import url({server}/d.css); body {{ background: url({server}/e.png) }}</style>",
        f'<link rel=stylesheet href="{server}/f.css"><link rel=prefetch href="{server}/g"><base href="{server}/">',
        f'<iframe src="{server}/h" srcdoc="<script>{run}</script>"></iframe>',
        f'<meta http-equiv=refresh content="0;{server}/i">',
        f"<!--<script>\u2028{run}//--></script></dialog></body></html><script>{run}</script>",
        f'<a href="javascript:{run}" autofocus onfocus="{run}">x</a><video poster={server}/j src={server}/k autoplay>',
    ]


def check_harmless(made: str, command: str, *, page: bool) -> None:
    """Check a report's DOM: its own script ran and no other; ``page``: the page of a sample stands open."""
    opening = re.search(r"<html[^>]*>", made)
    assert opening is not None
    assert "data-ready" in opening[0]
    assert "pwned" not in opening[0]
    title = re.search(r"<title>(.*?)</title>", made)
    assert title is not None
    assert title[1].startswith(command)
    assert bool(re.search(r'<dialog id="page"[^>]* open=""', made)) == page
    for element in ("<img", "<iframe", "<video", "<base", '<a href="javascript'):
        assert element not in re.sub(r"<script.*?</script>", "", made, flags=re.DOTALL)
