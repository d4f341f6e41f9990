"""Where the lab listens: on this machine alone."""

from __future__ import annotations

import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from cepheid.errors import OptionError
from cepheid.lab.gate import Gate

HERE = "127.0.0.1"


def new_token() -> str:
    return secrets.token_urlsafe(24)


def listening(port: int) -> socket.socket:
    """A socket of this machine alone; port 0 is any free one."""
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HERE, port))
    except OSError as error:
        made.close()
        raise OptionError(f"--port {port} can't be used: {error.strerror}") from None
    return made


def address(at: socket.socket, token: str) -> str:
    return f"http://{HERE}:{at.getsockname()[1]}/{token}/"


def serve(app: Gate, at: socket.socket, started: Callable[[], None]) -> None:
    """Answer until Ctrl-C."""
    server = _server(app)
    threading.Thread(target=_tell, args=(server, started), daemon=True).start()
    server.run(sockets=[at])


@contextmanager
def serving(app: Gate, at: socket.socket) -> Iterator[None]:
    """Answer in a thread, for the length of the block."""
    server = _server(app)
    # Signals belong to the main thread, which runs something else.
    thread = threading.Thread(target=server.run, kwargs={"sockets": [at]}, daemon=True)
    thread.start()
    _wait(server, thread)
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=5)


def _server(app: Gate) -> uvicorn.Server:
    # Requests aren't logged: their addresses have the token.
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=1,
        limit_concurrency=1100,
    )
    return uvicorn.Server(config)


def _wait(server: uvicorn.Server, thread: threading.Thread) -> None:
    """Until it answers."""
    while not server.started and thread.is_alive():
        time.sleep(0.02)


def _tell(server: uvicorn.Server, started: Callable[[], None]) -> None:
    _wait(server, threading.main_thread())
    if server.started:
        started()
