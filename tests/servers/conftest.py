"""Real llama-servers with SmolLM2. `make servers` builds them; without $LLAMA_SERVER the tests are skipped."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from llama_server import Servers


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Servers]:
    """Starts servers, which the end of the test stops."""
    program = os.environ.get("LLAMA_SERVER")
    if not program:
        pytest.skip("set LLAMA_SERVER to a llama-server: make servers builds two")
    servers = Servers(program, tmp_path)
    yield servers
    for server in servers.open:
        server.close()
