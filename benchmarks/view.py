"""How long the pages of `steelyard serve` take over many evaluations, how large they are, and what they keep.

python benchmarks/view.py --evaluations 100000 --folder .bench
python benchmarks/view.py --evaluations 1000000 --folder .bench --requests 0
python benchmarks/view.py --postgres postgresql://USER@HOST/DATABASE    an empty database, which is filled

The results file is the one of benchmarks/report.py; above 100,000 evaluations it is multiplied in SQLite,
each copy a little earlier, since to write them one by one takes long and shows nothing of the pages.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import httpx
from results_file import write

from steelyard.errors import ConfigurationError
from steelyard.report import TurnFilter, open_results
from steelyard.view import app

WRITTEN = 100_000
DAYS = 14 * 86400
PAGES = (
    "/",
    "/?since=24h",
    "/?metric=faithfulness",
    "/?tag=phone",
    "/?tag=web&metric=context_recall",
    "/?tag=nosuchtag",
    "/turns",
    "/turns?status=not_passed",
    "/turns?tag=phone&version=v2",
    "/turns?text=parcel",
    "/turns?text=nosuchword",
    "/turns?judge=nobody",
    "/turns?version=v0",
    "/turns?metric=nosuchmetric",
    "/turns?status=failed",
    "/turns?metric=faithfulness&status=not_passed&sort=metric:faithfulness",
    "/turns?tag=web&tag=phone&in.language=de",
    "/turn?id={record}",
    "/trace/none",
    "/api/new?time={time}&id={record}",
    "/api/closer",
)


def prepare(folder: Path, count: int) -> Path:
    """The results file, made once."""
    path = folder / f"report-{count}.db"
    if path.exists():
        return path
    source = prepare(folder, WRITTEN) if count > WRITTEN else None
    if source is None:
        write(path, count)
        return path
    shutil.copyfile(source, path)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        for copy in range(1, count // WRITTEN):
            multiply(connection, copy)
    return path


def multiply(connection: sqlite3.Connection, copy: int) -> None:
    """Add one more copy of all that was written, earlier by as long as that spans."""
    earlier = copy * DAYS
    connection.execute("BEGIN")
    for table in ("evaluations", "scores"):
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        changed = {name: f"{name} - {earlier}" for name in ("evaluated_at", "happened_at")}
        for name in ("id", "record_id"):
            changed[name] = f"{name} || '-{copy}'"
        changed["turn"] = f"turn + {copy * WRITTEN}"
        chosen = ", ".join(changed.get(name, name) for name in names)
        connection.execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {chosen} FROM {table} WHERE turn <= {WRITTEN}"
        )
    connection.execute("COMMIT")


async def measure(db: str, requests: int) -> None:
    """Ask for every page, then for many."""
    with closing(open_results(db)) as results:  # also brings a file of an earlier version up to date
        at, record = results.turns(TurnFilter(), limit=20)[-1].key
    transport = httpx.ASGITransport(app=app(db))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=600) as client:
        for page in PAGES:
            await ask(client, page.format(record=record, time=at))
        before = resident()
        for number in range(requests):
            await client.get(PAGES[number % len(PAGES) - 1].format(record=record, time=at))
        if requests:
            print(f"memory before and after {requests:,} requests: {before:.0f} and {resident():.0f} MB")


async def ask(client: httpx.AsyncClient, page: str) -> None:
    """A page three times: the first view, and the better of two more."""
    if page.startswith("/?") or page == "/":  # the closer look behind the page is asked for by itself
        await client.get(f"/api/closer{page[1:]}")
    took: list[tuple[float, float]] = []
    for _ in range(3):
        start, worked = time.perf_counter(), time.process_time()
        reply = await client.get(page)
        took.append((time.perf_counter() - start, time.process_time() - worked))
    size = f"{len(reply.content) / 1e3:6.1f} KB"
    print(f"{page[:44]:44} {reply.status_code} {shown(took[:1])}  {shown(took[1:])}  {size}")


def shown(took: Sequence[tuple[float, float]]) -> str:
    """Milliseconds by the clock, and of processor time."""
    wall, cpu = min(took)
    return f"{wall * 1e3:7.0f} ms ({cpu * 1e3:5.0f} CPU)"


def resident() -> float:
    """Megabytes of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def is_filled(db: str) -> bool:
    """Whether an earlier run has filled the database."""
    with suppress(ConfigurationError), closing(open_results(db)) as results:
        return bool(results.turns(TurnFilter(), limit=1))
    return False


def main() -> None:
    """Make, ask, and say what it took."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evaluations", type=int, default=WRITTEN)
    parser.add_argument("--folder", type=Path, default=Path(".bench"))
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--postgres", default="")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    db = given.postgres or str(prepare(given.folder, given.evaluations))
    if given.postgres and not is_filled(db):
        write(db, given.evaluations)
    asyncio.run(measure(db, given.requests))


if __name__ == "__main__":
    main()
