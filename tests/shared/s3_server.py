"""A store that speaks as much of S3 as is needed to read from it, in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

LISTING = """<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><IsTruncated>false</IsTruncated>
<KeyCount>{count}</KeyCount>{contents}</ListBucketResult>"""
ENTRY = """<Contents><Key>{}</Key><Size>{}</Size>
<LastModified>2020-01-01T00:00:00Z</LastModified></Contents>"""


class Handler(BaseHTTPRequestHandler):
    """Answers HEAD, GET of a range, and ListObjectsV2 for the files below a folder."""

    protocol_version = "HTTP/1.1"
    folder: Path
    asked: list[str]

    def do_HEAD(self) -> None:
        self._object(whole=False)

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        if "list-type" in query:
            self._list(query.get("prefix", [""])[0])
        else:
            self._object(whole=True)

    def _list(self, prefix: str) -> None:
        bucket = self.folder / urlsplit(self.path).path.split("/")[1]
        files = sorted(file for file in bucket.rglob("*") if file.is_file())
        found = [(str(file.relative_to(bucket)), file.stat().st_size) for file in files]
        found = [(key, size) for key, size in found if key.startswith(prefix)]
        contents = "".join(ENTRY.format(key, size) for key, size in found)
        self._answer(200, LISTING.format(count=len(found), contents=contents).encode())

    def _object(self, *, whole: bool) -> None:
        path = self.folder / unquote(urlsplit(self.path).path).lstrip("/")
        self.asked.append(f"{self.command} {path.name} {self.headers.get('Range', '')}".strip())
        if path.is_dir() and path.parent == self.folder:
            self._answer(200, b"")
        elif not path.is_file():
            self._answer(404, b"")
        else:
            self._send(path.read_bytes(), whole)

    def _send(self, content: bytes, whole: bool) -> None:
        given = self.headers.get("Range")
        if given is None:
            self._answer(200, content, whole)
            return
        first, last = given.removeprefix("bytes=").split("-")
        part = content[int(first) : int(last) + 1]
        self._answer(206, part, whole, f"bytes {first}-{last}/{len(content)}")

    def _answer(self, code: int, body: bytes, whole: bool = True, part: str = "") -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", formatdate(0, usegmt=True))
        if part:
            self.send_header("Content-Range", part)
        self.end_headers()
        if whole:
            self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


class Store:
    """Addresses of the files below a folder, whose subfolders are buckets."""

    def __init__(self, port: int, asked: list[str]) -> None:
        self._port, self.asked = port, asked

    def uri(self, place: str) -> str:
        where = f"endpoint_override=127.0.0.1:{self._port}&scheme=http&region=local"
        return f"s3://reader:secret@{place}?{where}"


@contextmanager
def store(folder: Path) -> Iterator[Store]:
    """Serve the folder until the context ends."""
    asked: list[str] = []
    handler = type("Here", (Handler,), {"folder": folder, "asked": asked})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield Store(server.server_address[1], asked)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
