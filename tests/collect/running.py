"""A collector in the test's own process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from collect.parts import PROTOBUF
from steelyard import Monitor
from steelyard.collect import Collector, SpanJournal, app
from steelyard.online import SpoolSettings
from steelyard_opentelemetry.received import ReceivedSpans

HERE = "http://127.0.0.1"


class Running:
    """A collector in this process, asked without a socket."""

    def __init__(self, folder: Path, **journal: Any) -> None:
        self.journal = SpanJournal(folder / "spans", **journal)
        self.monitor = Monitor(
            metrics=[], sinks=[], spool=SpoolSettings(path=folder / "spool", evaluate=False)
        )
        self.collector = Collector(
            journal=self.journal, reader=ReceivedSpans(quiet=0.05, ttl=5.0), monitor=self.monitor
        )
        self._left: int | None = None

    def ask(
        self,
        body: bytes | AsyncIterator[bytes] = b"",
        headers: dict[str, str] | None = None,
        *,
        method: str = "POST",
        at: str = HERE,
        signal: str = "traces",
        **options: Any,
    ) -> httpx.Response:
        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(app(self.collector, **options))
            async with httpx.AsyncClient(transport=transport, base_url=at) as client:
                return await client.request(
                    method, f"/v1/{signal}", content=body, headers=headers or PROTOBUF
                )

        return asyncio.run(send())

    def close(self) -> int:
        """End it, once; how many pieces are left in the journal."""
        if self._left is None:
            self._left = self.collector.close(60)
            self.monitor.close(0)
        return self._left

    @property
    def refused(self) -> dict[str, int]:
        return dict(self.collector.counts.refused_requests)
