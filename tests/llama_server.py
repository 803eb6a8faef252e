"""A llama-server that a test talks to, with the library preloaded or without."""

import json
import os
import socket
import subprocess
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx

from lzsampler import _ffi

LIBRARY = Path(str(_ffi.__file__)).parent / "liblzsampler_preload.so"
LOOPS = "I think that the"  # SmolLM2 repeats a sentence after this prompt, without a penalty


class Server:
    """A llama-server of its own, on a free port, with the library preloaded unless ``settings`` is None."""

    def __init__(self, program: str, log: Path, *words: str, settings: dict[str, Any] | None, **variables: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environment = {**os.environ, **variables}
        if settings is not None:
            environment |= {"LD_PRELOAD": str(LIBRARY), "LZSAMPLER": json.dumps({"version": 1, **settings})}
        command = [program, "--host", "127.0.0.1", "--port", str(port), "-t", "1", *words]
        self.log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(command, env=environment, stdout=out, stderr=subprocess.STDOUT)
        self.url = f"http://127.0.0.1:{port}"
        end = monotonic() + 120
        while not self._answers():
            if self.process.poll() is not None or monotonic() > end:
                self.close()
                raise AssertionError(self.output()[-3000:])
            sleep(0.2)

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def post(self, path: str, **body: Any) -> Any:
        answer = httpx.post(f"{self.url}{path}", json=body, timeout=120)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def complete(self, prompt: str = LOOPS, n: int = 300, **body: Any) -> str:
        """Greedy, unless the body says otherwise."""
        given = {"temperature": 0, "cache_prompt": False, "n_predict": n, **body}
        return str(self.post("/completion", prompt=prompt, **given)["content"])

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Servers:
    def __init__(self, program: str, folder: Path) -> None:
        self.program, self.folder, self.open = program, folder, list[Server]()

    def __call__(self, *words: str | Path, settings: dict[str, Any] | None, **variables: str) -> Server:
        log = self.folder / f"log{len(self.open)}.txt"
        self.open.append(Server(self.program, log, *map(str, words), settings=settings, **variables))
        return self.open[-1]
