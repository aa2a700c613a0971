"""Real processes that carry out something together, over loopback."""

import os
import socket
import subprocess
import sys

TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]


def free_port() -> str:
    """A port where processes can meet."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def start_together(count: int, *arguments, **options) -> list[subprocess.Popen]:
    """`python -m ARGUMENTS` in so many processes, told of each other as torchrun does."""
    common = {**os.environ, "WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    words = [sys.executable, "-m", *map(str, arguments)]
    return [subprocess.Popen(words, env={**common, "RANK": str(rank)}, **options) for rank in range(count)]


def together(count: int, *arguments) -> None:
    """The same; all must end well."""
    started = start_together(count, *arguments)
    try:
        codes = [process.wait(300) for process in started]
    finally:
        for process in started:
            process.kill()
    assert codes == [0] * count
