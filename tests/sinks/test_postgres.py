"""`PostgresSink` on a real server; what it writes is read back in tests/report/test_stores.py."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg_pool import ConnectionPool
from typer.testing import CliRunner

from servers import PostgresServer, free_port
from steelyard._internal.threads import ThreadHangs
from steelyard.cli._app import build
from steelyard.errors import ConfigurationError, SinkError
from steelyard.record import Record
from steelyard.report import open_results
from steelyard.scores import Evaluation, Provenance, Score
from steelyard.sinks import PostgresSink, SQLiteSink, prune, sink_from

pytestmark = pytest.mark.skipif(
    not PostgresServer.there(), reason="needs a Postgres: apt-get install postgresql"
)


def judged(name: str, value: float = 0.5, **record: object) -> Evaluation:
    return Evaluation(
        record_id=name,
        scores=(Score(id=f"{name}-score", metric="faithfulness", status="scored", value=value),),
        record=Record(id=name, question="q", answer="a", **record),  # type: ignore[arg-type]
        evaluated_at=1_700_000_000.0,
    )


def write(url: str, *batches: list[Evaluation]) -> PostgresSink:
    sink = PostgresSink(url)

    async def run() -> None:
        for batch in batches:
            await sink.write(batch)
        await sink.aclose()

    asyncio.run(run())
    return sink


def stored(url: str) -> dict[str, float]:
    with psycopg.connect(url) as connection:
        return dict(connection.execute("SELECT record_id, value FROM steelyard.scores").fetchall())


def test_the_same_result_written_again_is_one_row(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    sink = write(url, [judged("a", 0.1), judged("a", 0.2)], [judged("a", 0.3), judged("b")])
    assert stored(url) == {"a": 0.3, "b": 0.5}
    assert sink.counts.written == 2
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM steelyard.bodies").fetchone() == (2,)


def test_the_oldest_turns_beyond_an_age_or_a_number_are_deleted_whole(postgres: PostgresServer) -> None:
    url, now = postgres.new_database(), time.time()
    aged = [replace(judged(f"{days}d"), evaluated_at=now - 86_400 * days) for days in range(450)]
    write(url, [replace(one, screen=one.scores) for one in aged])
    done = prune(url, keep="400d, 440 turns")
    assert (done.turns, done.left) == (50, 400)
    assert done.bytes_before > 0
    assert done.bytes_after > 0
    assert prune(url, keep=399).turns == 1
    assert set(stored(url)) == {f"{days}d" for days in range(399)}
    with psycopg.connect(url) as connection:
        for table in ("evaluations", "scores", "screened", "bodies"):
            assert connection.execute(f"SELECT count(*) FROM steelyard.{table}").fetchone() == (399,)
    said = CliRunner().invoke(build(), ["prune", "--keep", "100", url])
    assert "deleted 299 turns, 100 are left" in said.output
    assert postgres.password not in said.output


async def test_a_sink_keeps_what_it_was_told_to_while_it_writes(postgres: PostgresServer) -> None:
    url, now = postgres.new_database(), time.time()
    sink = PostgresSink(url, keep="30d")

    old = [replace(judged(f"old {n}"), evaluated_at=now - 86_400 * 31) for n in range(300)]
    await sink.write(old)
    await sink.write([replace(judged("new"), evaluated_at=now)])
    await sink.aclose()
    assert set(stored(url)) == {"new"}
    assert sink.counts.written == 301


def test_what_cannot_be_kept_or_pruned_is_named(postgres: PostgresServer) -> None:
    with pytest.raises(ConfigurationError, match=r"a size says nothing there"):
        PostgresSink(postgres.url, keep="2GB")
    empty = postgres.new_database()
    with pytest.raises(ConfigurationError, match=r"there are no results"):
        prune(empty, keep=5)
    with psycopg.connect(empty) as connection:
        assert connection.execute("SELECT to_regnamespace('steelyard')").fetchone() == (None,)
    with pytest.raises(SinkError, match=r"cannot be reached"):
        prune(f"postgresql://me:hidden-word@127.0.0.1:{free_port()}/db", keep=5)


def test_one_evaluation_that_cannot_be_stored_is_refused_alone(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = postgres.new_database()
    bad = Evaluation(record_id="bad", scores=(Score(id="x", metric="m", status="scored", value=1e400),))
    sink = write(url, [judged("a"), bad, judged("b")])
    assert stored(url) == {"a": 0.5, "b": 0.5}
    assert sum(sink.counts.refused.values()) == 1
    assert "cannot be stored" in caplog.text


def test_many_processes_may_begin_at_once_and_what_they_write_has_growing_numbers(
    postgres: PostgresServer,
) -> None:
    url = postgres.new_database()
    with ThreadPoolExecutor(6) as threads:
        for done in [
            threads.submit(write, url, *[[judged(f"{number}-{batch}")] for batch in range(5)])
            for number in range(6)
        ]:
            done.result(120)
    with closing(open_results(url)) as reader:
        found, position = [], 0
        while news := reader.written_after(position, limit=7):
            found += [one.record_id for _, one in news]
            position = news[-1][0]
    assert len(found) == len(set(found)) == 30


async def test_a_server_that_goes_away_loses_what_is_written_meanwhile_by_count_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    server = PostgresServer(tmp_path).start()
    sink = PostgresSink(server.url)

    await sink.write([judged("before")])
    server.stop(signal.SIGQUIT)
    with pytest.raises(SinkError, match=r"cannot be reached") as lost:
        await sink.write([judged("during")])
    assert lost.value.cause == "unreachable"
    assert server.password not in str(lost.value)
    server.start()
    await sink.write([judged("after")])
    await sink.aclose()
    assert set(stored(server.url)) == {"before", "after"}
    assert sum(sink.counts.lost.values()) == 1
    server.stop(signal.SIGQUIT)
    assert server.password not in caplog.text


class Line:
    """A connection to a server that may fall silent: what it carried by then is never answered."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._open = [socket.create_server(("127.0.0.1", 0))]
        self.port = self._open[0].getsockname()[1]
        self.silent = False
        threading.Thread(target=self._serve, daemon=True).start()

    def close(self) -> None:
        for one in self._open:
            one.close()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._open[0].accept()
                far = socket.create_connection(("127.0.0.1", self._server.port))
                self._open += [near, far]
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._carry, args=(one, other), daemon=True).start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if self.silent:
                    return
                other.sendall(data)
            other.shutdown(socket.SHUT_RDWR)


async def test_a_server_that_falls_silent_takes_results_again_later(postgres: PostgresServer) -> None:
    line = Line(postgres)
    url = postgres.new_database()
    sink = PostgresSink(url.replace(str(postgres.port), str(line.port)))

    await sink.write([judged("before")])
    line.silent = True
    # More than it has threads and connections.
    for _ in range(8):
        with pytest.raises((TimeoutError, ThreadHangs)):
            async with asyncio.timeout(0.2):
                await sink.write([judged("during")])
    line.silent = False
    async with asyncio.timeout(60):
        while sink.counts.written != 2:
            with contextlib.suppress(SinkError, ThreadHangs):
                await sink.write([judged("after")])
            await asyncio.sleep(0.05)
    await sink.aclose()
    line.close()
    assert set(stored(url)) == {"before", "after"}


def test_a_server_that_is_not_there_and_wrong_credentials_are_named(
    postgres: PostgresServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    away = PostgresSink(f"postgresql://me:hidden-word@127.0.0.1:{free_port()}/db")
    with pytest.raises(SinkError, match=r"127\.0\.0\.1:\d+/db: it cannot be reached"):
        away.open()
    wrong = postgres.url.replace(postgres.password, "wrong-hidden-word")
    with pytest.raises(SinkError, match=r"it refuses the credentials") as refused:
        PostgresSink(wrong).open()
    assert refused.value.cause == "unauthorized"
    with pytest.raises(ConfigurationError, match=r"cannot be read: it refuses the credentials") as unread:
        open_results(wrong)
    shown = f"{away.name} {refused.value} {unread.value} {caplog.text}"
    assert "hidden-word" not in shown


def test_tables_of_a_newer_version_or_none_at_all_are_refused(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with pytest.raises(ConfigurationError, match=r"no results in .* yet"):
        open_results(url)
    write(url, [judged("a")])
    with psycopg.connect(url) as connection:
        connection.execute("INSERT INTO steelyard.schema_version VALUES (99)")
    with pytest.raises(ConfigurationError, match=r"version 99, newer than 8; update steelyard"):
        PostgresSink(url).open()
    with pytest.raises(ConfigurationError, match=r"version 99"):
        open_results(url)


def test_other_tables_of_the_same_names_are_left_alone(postgres: PostgresServer) -> None:
    url = postgres.new_database()
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE scores (mine text)")
    write(url, [judged("a")])
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT count(*) FROM public.scores").fetchone() == (0,)


def test_the_sink_by_name_takes_no_password() -> None:
    [sink] = sink_from("postgresql://me@db.example/results")
    assert sink.name == "postgres:db.example/results"
    assert isinstance(sink_from("postgres")[0], PostgresSink)
    with pytest.raises(ConfigurationError, match=r"PGPASSWORD") as refused:
        sink_from("postgresql://me:hidden-word@db.example/results")
    assert "hidden-word" not in str(refused.value)


def test_a_bar_is_learned_from_what_is_stored(postgres: PostgresServer) -> None:
    url, now = postgres.new_database(), time.time()
    turns = [
        replace(judged(f"{n}", n / 300), evaluated_at=now, happened_at=now - n % 20 * 86_400)
        for n in range(300)
    ]
    made = Provenance(judge="j", prompt_version="p", metric_version="m")
    turns = [replace(one, scores=(replace(one.scores[0], provenance=made),)) for one in turns]
    sink = write(url, turns)
    bar = sink.baseline(turns[0].scores[0], now=now)
    assert bar is not None and 0.0 < bar < 0.1
    assert sink.baseline(replace(turns[0].scores[0], provenance=None), now=now) is None


@pytest.mark.parametrize("kind", [PostgresSink, SQLiteSink])
def test_calls_of_experiments_are_counted_by_the_day_for_all_processes(
    kind: type[PostgresSink | SQLiteSink], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    place = str(tmp_path / "new.db")
    if kind is PostgresSink:
        place = request.getfixturevalue("postgres").new_database()
    sinks = [kind(place) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        granted = list(threads.map(lambda at: sinks[at % 4].count_replay("2025-01-01", most=7), range(12)))
    assert sum(granted) == 7
    assert sinks[0].count_replay("2025-01-02", most=7)
    for sink in sinks:
        asyncio.run(sink.aclose())


def test_threads_that_come_at_once_share_the_connections_of_a_sink(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, made, open_pool = threading.Barrier(8), set(), ConnectionPool.open

    def opened(pool: ConnectionPool, *given: bool) -> None:
        made.add(pool)
        open_pool(pool, *given)

    def come(_: int) -> None:
        together.wait()
        sink.open()

    monkeypatch.setattr(ConnectionPool, "open", opened)
    sink = PostgresSink(postgres.new_database())
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(come, range(8)))
    asyncio.run(sink.aclose())
    assert len(made) == 1
