"""The primitives that all rooms share."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sqlite3
import stat
import sys
import threading
import time
import unicodedata
import weakref
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from report.parts import results, turn
from steelyard._internal.bounded import BoundedDict
from steelyard._internal.forks import transaction
from steelyard._internal.lazy import lazy_exports
from steelyard._internal.logs import SafeLogger, WarnOnce
from steelyard._internal.loops import PerLoop, PerLoopSemaphore
from steelyard._internal.text import (
    error_place,
    error_words,
    printable,
    redacted,
    redacted_url,
    shorten,
    visible,
)
from steelyard._internal.threads import DaemonExecutor, ExitInThread, LoopThread, ThreadHangs
from steelyard._internal.typed import PiecewiseDecoder, json_pieces, json_value
from steelyard.cli._app import build
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.golden import Case, GoldenSet, Run
from waiting import until


def test_the_oldest_entries_go_first() -> None:
    gone: list[str] = []
    kept: BoundedDict[str, int] = BoundedDict(max_items=2, forgotten=lambda key, _: gone.append(key))
    kept["a"], kept["b"], kept["a"], kept["c"] = 1, 2, 3, 4
    assert dict(kept) == {"a": 3, "c": 4}
    assert gone == ["b"]


def test_the_weight_is_bounded_and_follows_every_change() -> None:
    kept: BoundedDict[str, str] = BoundedDict(max_items=9, max_weight=5, weigh=len)
    kept["a"], kept["b"] = "xxx", "yy"
    assert kept.weight == 5
    kept["a"] = "x"
    assert kept.weight == 3
    kept["c"] = "zzzz"
    assert dict(kept) == {"a": "x", "c": "zzzz"}
    kept["e"] = "eeeee"  # one that is heavy takes the room of several
    assert dict(kept) == {"e": "eeeee"}
    del kept["e"]
    kept["a"], kept["c"] = "x", "zzzz"
    del kept["c"]
    assert (kept.pop("a"), kept.weight, len(kept)) == ("x", 0, 0)
    kept["d"] = "too heavy"
    assert len(kept) == kept.weight == 0


def test_a_bounded_dict_can_be_filled_from_several_threads() -> None:
    kept: BoundedDict[int, None] = BoundedDict(max_items=10)

    def fill(start: int) -> None:
        for number in range(start, start + 5000):
            kept[number] = None

    threads = [threading.Thread(target=fill, args=(start,)) for start in (0, 10_000, 20_000, 30_000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(kept) == 10


def test_a_log_line_names_the_place_that_wrote_it(caplog: pytest.LogCaptureFixture) -> None:
    log = SafeLogger("steelyard.test")
    log.warning("one %s", "two")
    log.log(logging.ERROR, "three", stacklevel=1)
    places = [(record.filename, record.funcName, record.getMessage()) for record in caplog.records]
    here = "test_a_log_line_names_the_place_that_wrote_it"
    assert places == [("test_internal.py", here, "one two"), ("test_internal.py", here, "three")]


def test_a_problem_is_logged_once_for_each_kind_and_owner(caplog: pytest.LogCaptureFixture) -> None:
    first, second = (
        WarnOnce(SafeLogger("steelyard.test")),
        WarnOnce(SafeLogger("steelyard.test")),
    )
    assert first("full", "the %s is full", "disk")
    assert not first("full", "the %s is full", "disk")
    assert first("slow", "slow", level=logging.ERROR)
    assert second("full", "the %s is full", "tape")
    assert caplog.messages == ["the disk is full", "slow", "the tape is full"]
    assert [line.levelno for line in caplog.records] == [logging.WARNING, logging.ERROR, logging.WARNING]


def test_each_loop_has_an_object_of_its_own_which_goes_with_the_loop() -> None:
    class Thing:
        pass

    things = PerLoop(Thing)

    async def same() -> weakref.ref[Thing]:
        assert things.here() is things.here()
        return weakref.ref(things.here())

    first, second = asyncio.run(same()), asyncio.run(same())
    gc.collect()
    assert first() is None
    assert second() is None


def test_a_semaphore_works_in_one_loop_after_another() -> None:
    semaphore = PerLoopSemaphore(1)

    async def contend() -> None:
        async def hold() -> None:
            async with semaphore.here():
                await asyncio.sleep(0)

        await asyncio.gather(hold(), hold(), hold())

    asyncio.run(contend())
    asyncio.run(contend())
    with pytest.raises(ConfigurationError, match="at least 1"):
        PerLoopSemaphore(0)


def test_a_lazy_name_is_imported_when_it_is_used() -> None:
    getattribute, directory = lazy_exports(
        __name__,
        {"OrderedDict": "collections", "Thing": "a_package.thing"},
        extras={"a_package": ("dist", "extra")},
    )
    assert getattribute("OrderedDict").__name__ == "OrderedDict"
    assert {"OrderedDict", "Thing", "lazy_exports"} <= set(directory())
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        getattribute("other")
    with pytest.raises(MissingDependency, match=r"steelyard\[extra\]"):
        getattribute("Thing")


async def hang(executor: DaemonExecutor, release: threading.Event) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await executor.run(release.wait)


async def test_until_hung_calls_return_no_thread_is_left() -> None:
    executor, release = DaemonExecutor(1, name="test"), threading.Event()
    await hang(executor, release)
    with pytest.raises(ThreadHangs):
        await executor.run(int)
    release.set()
    while True:
        try:
            assert await executor.run(int) == 0
            break
        except ThreadHangs:
            await asyncio.sleep(0.01)
    executor.shutdown()


async def test_a_thread_that_hangs_is_replaced_while_there_are_spares() -> None:
    executor, release = DaemonExecutor(1, name="test", spares=2), threading.Event()
    await hang(executor, release)
    await hang(executor, release)
    assert await executor.run(int) == 0
    await hang(executor, release)
    with pytest.raises(ThreadHangs):
        await executor.run(int)
    release.set()
    executor.shutdown()


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
async def test_a_call_that_wants_to_exit_does_not_end_the_loop(kind: type[BaseException]) -> None:
    def leave() -> None:
        raise kind

    executor = DaemonExecutor(1, name="test")
    with pytest.raises(ExitInThread, match=kind.__name__):
        await executor.run(leave)
    assert await executor.run(int) == 0
    executor.shutdown()


def test_the_threads_of_an_executor_that_is_forgotten_end() -> None:
    executor = DaemonExecutor(3, name="forgotten")
    executor.submit(int).result(120)
    threads = [one for one in threading.enumerate() if one.name.startswith("forgotten")]
    assert len(threads) == 3
    del executor
    gc.collect()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_a_loop_thread_runs_until_it_is_joined() -> None:
    began, ended = threading.Event(), threading.Event()

    async def main() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    thread = LoopThread(main, name="test-loop")
    thread.start()
    assert began.wait(120)
    assert not thread.current
    assert thread.join(60)
    assert ended.is_set()
    thread.call(lambda: None)


def test_a_loop_thread_is_one_thread_until_something_blocks() -> None:
    found: list[int] = []

    def helpers() -> int:
        return sum(one.name.startswith("test-loop-io") for one in threading.enumerate())

    async def main() -> None:
        found.append(helpers())
        found.append(await asyncio.to_thread(helpers))

    thread = LoopThread(main, name="test-loop")
    thread.start()
    until(lambda: thread.ended)
    assert found == [0, 1]


def test_where_threads_are_refused_the_loop_itself_does_what_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    async def main() -> None:
        def refused(thread: threading.Thread) -> None:
            raise RuntimeError("can't create new thread at interpreter shutdown")

        monkeypatch.setattr(threading.Thread, "start", refused)
        try:
            found.append(await asyncio.to_thread(threading.get_ident))
        finally:
            monkeypatch.undo()
        found.append(threading.get_ident())

    thread = LoopThread(main, name="test-loop")
    thread.start()
    until(lambda: thread.ended)
    assert len(found) == 2 and found[0] == found[1]


def test_a_loop_thread_that_hangs_is_not_waited_for() -> None:
    began, release = threading.Event(), threading.Event()

    async def main() -> None:
        began.set()
        release.wait()

    thread = LoopThread(main, name="test-loop")
    thread.start()
    assert began.wait(120)
    started = time.monotonic()
    assert not thread.join(0.05)
    assert time.monotonic() - started < 60
    release.set()
    assert thread.join(60)


def test_terminal_sequences_are_taken_apart() -> None:
    assert printable("\x1b[2J\x1b]0;title\x07gone\x9b31m") == "�[2J�]0;title�gone�31m"


def test_no_character_reorders_or_breaks_a_line() -> None:
    assert printable("a\u202eb\u2066c\u200fd\u2028e\u2029f\x85g") == "a�b�c�d e f g"


def test_lines_are_kept_where_they_are_asked_for() -> None:
    assert printable("a\r\nb\tc\u2028d\x1b", lines=True) == "a\nb\tc\nd�"
    assert printable("a\r\n  b\tc") == "a b c"


def test_scripts_and_emoji_are_left_alone() -> None:
    text = "naïve 東京 हिन्दी می‌خواهم 👩‍🔬 שלום"
    assert printable(text) == text


@given(st.text(st.characters(codec=None, categories=["Cc", "Cf", "Cs", "Zl", "Zp", "L"])))
def test_nothing_that_acts_is_left(text: str) -> None:
    shown = printable(text)
    assert not {unicodedata.category(letter) for letter in shown} & {"Cc", "Zl", "Zp", "Cs"}
    assert not {unicodedata.bidirectional(letter) for letter in shown} & {
        *("RLO", "LRO", "RLE", "LRE", "PDF", "RLI", "LRI", "FSI", "PDI"),
    }


@given(st.text(st.characters(codec=None, categories=["Cc", "Cf", "Cs", "Zl", "Zp", "L"])))
def test_what_is_made_visible_keeps_every_position(text: str) -> None:
    shown = visible(text)
    assert len(shown) == len(text)
    assert all(new in (old, " ", "\N{REPLACEMENT CHARACTER}") for old, new in zip(text, shown, strict=True))
    assert not {unicodedata.category(letter) for letter in shown.replace("\n", "").replace("\t", "")} & {
        *("Cc", "Zl", "Zp", "Cs"),
    }


def test_a_shortened_text_is_one_harmless_line_of_that_width() -> None:
    assert shorten("one\n\x1b[2Jtwo", 40) == "one �[2Jtwo"
    assert shorten("one two three", 8) == "one two…"
    assert len(shorten("x" * 10_000, 50)) == 50


def test_a_transaction_that_fails_leaves_nothing_and_holds_up_no_other() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE names (name TEXT)")
        for name in ("lost", "kept"):
            try:
                with transaction(db):
                    db.execute("INSERT INTO names VALUES (?)", (name,))
                    if name == "lost":
                        raise KeyboardInterrupt
            except KeyboardInterrupt:
                pass
        assert db.execute("SELECT name FROM names").fetchall() == [("kept",)]


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX permissions")


def a_golden_set(path: Path) -> None:
    GoldenSet(name="set", cases=(Case(id="1", question="Who is ill?"),)).save(path)


def a_run(path: Path) -> None:
    Run(golden="set", version="1", app="a:b", judge="local", cases=()).save(path)


def exported_labels(path: Path) -> None:
    db = path.with_name("results.db")
    results(db, [turn(1, 0.5)])
    assert CliRunner().invoke(build(), ["labels", "export", f"{path}", "--db", f"{db}"]).exit_code == 0


def scores(path: Path) -> None:
    turns = path.with_name("turns.jsonl")
    turns.write_text(json.dumps({"question": "Who is ill?", "contexts": ["Ann is."], "answer": "Ann is."}))
    assert CliRunner().invoke(build(), ["score", f"{turns}", "--out", f"{path}"]).exit_code == 0


@pytest.mark.parametrize("write", [a_golden_set, a_run, exported_labels, scores])
def test_a_new_file_of_texts_is_for_its_owner_alone(write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    before = os.umask(0)
    try:
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        # Whoever gave others the right has said so, and a later writing keeps it.
        path.chmod(0o644)
        write(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o644
    finally:
        os.umask(before)


KEY = "planted-key-93f1"


@pytest.mark.parametrize(
    "text",
    [
        f"https://user:{KEY}@host/v1 cannot be reached",
        f"GET https://host/v1?api_key={KEY}&page=2",
        f"https://host/?a=1&access_token={KEY}",
        f"Authorization: Bearer {KEY}",
        f"authorization: basic {KEY}==",
        f'{{"api_key": "{KEY}"}}',
        f"DD-API-KEY: {KEY}",
        f"password={KEY}; host=db",
        f"Incorrect API key provided: sk-proj-{KEY}",
        f"lsv2_pt_{KEY} is not a key",
        f"the server said {KEY}",
    ],
)
def test_keys_leave_a_text(text: str) -> None:
    shown = redacted(text, secrets=[KEY] if text.startswith("the server") else [])
    assert "93f1" not in shown
    assert "***" in shown


def test_ordinary_text_stays() -> None:
    text = "The monkey: a key figure at https://host/path?page=2; tokens: 12; basic facts, bearer of news"
    assert redacted(text, secrets=["a", ""]) == text


def test_addresses_are_shown_without_user_query_and_fragment() -> None:
    assert redacted_url(f"https://u:{KEY}@host:8080/a/b?api_key={KEY}#{KEY}") == "https://host:8080/a/b"
    assert KEY not in redacted_url(f"http://[{KEY}")
    assert KEY not in redacted_url(f"sqlite:///file.db?key={KEY}")
    assert KEY not in redacted_url(f"nats:token={KEY}")


def test_errors_are_shown_by_type_and_status() -> None:
    assert error_words(ValueError(KEY)) == "ValueError"
    assert error_words(OSError(28, "No space left on device", KEY)) == "OSError (No space left on device)"
    with closing(sqlite3.connect(":memory:")) as db, pytest.raises(sqlite3.OperationalError) as caught:
        db.execute(f'SELECT "{KEY}" FROM nowhere')
    assert error_words(caught.value) == "OperationalError (SQLITE_ERROR)"


def test_time_grows_with_the_length_only() -> None:
    def seconds(times: int) -> float:
        text = ("://" + "a" * 50 + "api_key" * 50 + "=" + "bearer " * 20 + "sk-" * 50) * times
        started = time.thread_time()
        redacted(text)
        return time.thread_time() - started

    small = min(seconds(20) for _ in range(3))
    assert min(seconds(80) for _ in range(3)) < 12 * small


def test_of_two_keys_of_which_one_begins_the_other_nothing_is_left() -> None:
    for keys in (["plain-words", "plain-words-and-more"], ["plain-words-and-more", "plain-words"]):
        assert redacted("plain-words-and-more, plain-words", secrets=keys) == "***, ***"


def test_an_error_of_a_user_is_shown_by_where_it_was_raised() -> None:
    def raises() -> None:
        raise ValueError(KEY)

    with pytest.raises(ValueError) as caught:
        raises()
    line = raises.__code__.co_firstlineno + 1
    assert error_place(caught.value) == f"ValueError ({__file__}, line {line})"
    assert error_place(ValueError(KEY)) == "ValueError"


LONG = "x" * 60_000
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def long(value: object) -> list[object]:
    """A list and an object that no window holds, around a value."""
    return [value, {"a": value, LONG: [LONG] * 3, "b": [value] * 40}, value]


@settings(max_examples=60, deadline=None)
@given(plain)
def test_what_is_written_in_pieces_is_read_in_pieces(value: object) -> None:
    for given_value in (value, long(value)):
        text = "".join(json_pieces(given_value))
        assert text == json.dumps(given_value, ensure_ascii=False, separators=(",", ":"))
        assert json_value(text) == given_value
        if text.isascii():
            assert json_value(text.encode("ascii")) == given_value


@pytest.mark.parametrize("end", ["]", "", "]]", ",]", "] x", '"', "}", "nul]", ",NaN"])
def test_long_text_that_is_not_json_is_refused_as_short_text_is(end: str) -> None:
    text = f'[{{"a": [1, 2]}}, "{LONG}"{end}'
    try:
        expected = json.loads(text)
    except ValueError as error:
        with pytest.raises(ValueError) as caught:
            json_value(text)
        assert str(caught.value) == str(error)
    else:
        assert json_value(text) == expected


def test_characters_that_stand_across_pieces_are_read_whole() -> None:
    for start in range(4):
        text = json.dumps(["a" * start + "\U0001f600中é" * 100_000], ensure_ascii=False)
        assert json_value(text.encode()) == json_value(b"\xef\xbb\xbf" + text.encode()) == json.loads(text)
    with pytest.raises(ValueError):
        json_value(text.encode()[:-3])


def test_long_text_is_not_read_in_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps([[LONG, number] for number in range(50)])
    expected = json.loads(text)
    monkeypatch.delattr(json, "loads")
    assert json_value(text) == json_value(text.encode()) == expected


def test_hooks_and_limits_hold_in_pieces_too() -> None:
    def refuse(name: str) -> Any:
        raise ValueError(name)

    decoder = PiecewiseDecoder(parse_constant=refuse, object_pairs_hook=tuple)
    assert decoder.decode(f'{{"a": {{"b": 1}}, "c": "{LONG}"}}') == (("a", (("b", 1),)), ("c", LONG))
    with pytest.raises(ValueError, match="NaN"):
        decoder.decode(f'["{LONG}", NaN]')
    with pytest.raises(ValueError):
        "".join(json_pieces([LONG, float("nan")], allow_nan=False))
    with pytest.raises(RecursionError):
        json_value("[" * 100_000)
    assert len(list(json_pieces(["x"] * 10))) == 1
    assert max(map(len, json_pieces([LONG] * 100))) < 2 * len(LONG)
