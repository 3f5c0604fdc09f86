"""Takes pictures of the pages over a made-up fortnight (light, dark, a phone), and of the demo as it runs.

python scripts/pictures.py [--folder .pictures]
python scripts/pictures.py --docs      those that README and docs show, into docs/images
python scripts/pictures.py --phoenix   a trace with our scores in a real Phoenix, which is installed first
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import chdir, suppress
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import uvicorn
from PIL import Image
from playwright.sync_api import sync_playwright
from rich.console import Console
from rich.text import Text

from steelyard.cli.commands._demo import write_fortnight
from steelyard.report import report
from steelyard.sinks import SQLiteSink
from steelyard.view import app

PLAIN_NAME = (
    """() => { for (const one of document.querySelectorAll(".db")) one.textContent = "steelyard.db"; }"""
)
"""Shows the file without its folder, which is another one each time."""
WORST = "/turns?metric=faithfulness&sort=metric:faithfulness&in.tenant=acme&status=not_passed"
STATES = {
    "overview": "/",
    "overview-time": "/?since=7d&metric=faithfulness",
    "turns": "/turns",
    "turns-narrowed": WORST,
    "turns-none": "/turns?text=nothing+has+these+words",
    "turn": WORST,
    "label": "/label",
    "compare": "/compare",
    "sessions": "/sessions",
    "alarms": "/alarms",
    "coverage": "/coverage",
    "judges": "/judges",
}
LOOKS = {"light": (1440, 900, "light"), "dark": (1440, 900, "dark"), "phone": (390, 844, "light")}


def serving(db: str) -> tuple[uvicorn.Server, str]:
    """The live view, on a free port."""
    server = uvicorn.Server(uvicorn.Config(app(db), port=0, log_level="warning"))
    threading.Thread(target=server.run, daemon=True).start()
    while not server.started:
        time.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    return server, f"http://127.0.0.1:{port}"


def opened(browser: Any, address: str, look: str) -> Any:
    """A page with its charts drawn, and what comes after it."""
    width, height, scheme = LOOKS[look]
    view = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    view.goto(address)
    view.wait_for_load_state("networkidle")
    view.evaluate(PLAIN_NAME)
    return view


def first_turn(view: Any) -> None:
    """From a list to its first turn."""
    view.locator("#rows a.open").first.click()
    view.wait_for_load_state("networkidle")
    view.evaluate(PLAIN_NAME)


def of_states(browser: Any, address: str, empty: str, folder: Path) -> None:
    """Every state in every look; a page that is wider than its window is said."""
    for look in LOOKS:
        for name, path in [*STATES.items(), ("empty", ""), ("empty-turns", "/turns")]:
            view = opened(browser, f"{empty if name.startswith('empty') else address}{path}", look)
            if name == "turn":
                first_turn(view)
            if view.evaluate("document.documentElement.scrollWidth > innerWidth"):
                print(f"{name}-{look} runs off the window")
            view.screenshot(path=folder / f"{name}-{look}.png")
            view.close()


def of_docs(browser: Any, address: str, page: Path, folder: Path) -> None:
    """What README and docs show."""
    shots: dict[str, tuple[str, str, Callable[[Any], None] | None]] = {
        "overview": (address, "light", None),
        "live-turn": (f"{address}{WORST}", "light", first_turn),
        "report": (page.as_uri(), "light", None),
        "turn": (f"{address}{WORST}", "phone", first_turn),
    }
    for name, (path, look, then) in shots.items():
        view = opened(browser, path, look)
        if then:
            then(view)
        view.screenshot(path=folder / f"{name}.png")
        view.close()
        shrink(folder / f"{name}.png")


def shrink(picture: Path) -> None:
    """Makes a picture take a third of its bytes."""
    with Image.open(picture) as whole:
        small = whole.convert("RGB").quantize(200, dither=Image.Dither.NONE)
    small.save(picture, optimize=True)


def of_terminal(folder: Path) -> None:
    """`steelyard demo`, as a terminal of 100 columns shows it line by line."""
    command = [sys.executable, "-c", "from steelyard.cli import main; main()", "demo"]
    env = {**os.environ, "COLUMNS": "100", "TERM": "xterm-256color", "TTY_INTERACTIVE": "0"}
    ours, theirs = os.openpty()
    with subprocess.Popen(command, env=env, stdout=theirs), open(ours, "rb", buffering=0) as terminal:
        os.close(theirs)
        shown, began = bytearray(), time.monotonic()
        ended = [0.0]  # when each line did; the first one is the command
        with suppress(OSError):  # how a terminal says that its program has ended
            while piece := terminal.read(1 << 16):
                shown += piece
                ended += [time.monotonic() - began] * piece.count(b"\n")
    console = Console(record=True, width=100, file=StringIO())
    console.print(Text.from_ansi(f"$ steelyard demo\n{shown.decode().rstrip()}".replace("\r", "")))
    drawn = console.export_svg(title="steelyard demo")
    # A picture fetches nothing: where there is no such font, another of equal width will do.
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r"[ \t]+$", "", moving(drawn, ended), flags=re.MULTILINE)
    (folder / "demo.svg").write_text(drawn, encoding="utf-8")


def moving(drawn: str, ended: list[float]) -> str:
    """The picture of a terminal whose lines come as they came, three times; still for who wants that."""
    starts = [0.0]
    for earlier, later in pairwise(ended):
        # Nobody waits long for a picture, and nobody reads twenty lines at once.
        starts.append(starts[-1] + min(max(later - earlier, 0.06), 1.2))
    whole = starts[-1] + 6
    # A line is bare when it begins, and there from its time on.
    rules = [
        f"@keyframes l{line} {{ 0% {{ opacity: 0 }} {100 * at / whole:.1f}% {{ opacity: 1 }} }}\n"
        f".l{line} {{ animation: l{line} {whole:.1f}s step-end 3 }}"
        for line, at in enumerate(starts)
        if line
    ]
    style = "\n".join(["@media (prefers-reduced-motion: no-preference) {", *rules, "}"])
    drawn = re.sub(r'<text class="([^"]*)"(?=[^>]*-line-(\d+)\))', r'<text class="\1 l\2"', drawn)
    return drawn.replace("</style>", f"{style}\n</style>", 1)


def of_phoenix(browser: Any, folder: Path) -> None:
    """A traced turn of a chain in a real Phoenix, with the scores that `PhoenixSink` sent there."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "parts"))
    from phoenix import phoenix_server

    with phoenix_server() as address:
        traced_turn(address)
        view = browser.new_page(viewport={"width": 1440, "height": 760}, color_scheme="light")
        view.goto(f"{address}/projects")
        view.locator("a[href*='/projects/']").first.click()
        view.locator("a[href*='/spans/']").first.click()
        pane = view.locator("[role=dialog]")
        pane.get_by_role("heading", name="Annotations").click()
        view.wait_for_timeout(5_000)
        view.mouse.move(0, 0)
        view.wait_for_load_state("networkidle")
        pane.screenshot(path=folder / "phoenix.png", animations="disabled")
        shrink(folder / "phoenix.png")


def traced_turn(phoenix: str) -> None:
    """One turn of a LangChain chain, its spans and its scores sent to Phoenix."""
    from langchain_core.documents import Document
    from langchain_core.language_models.fake_chat_models import FakeListChatModel
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import RunnablePassthrough
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    from steelyard import Monitor
    from steelyard.sinks import PhoenixSink
    from steelyard_langchain import CallbackHandler

    class Library(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            built = "The lighthouse was built in 1811. Its builder was Robert Stevenson."
            ferry = "The ferry leaves the north pier at 7:40 every morning except Sunday."
            return [Document(id="d1", page_content=built), Document(id="d2", page_content=ferry)]

    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{phoenix}/v1/traces")))
    LangChainInstrumentor().instrument(tracer_provider=provider)
    found = Library() | (lambda documents: "\n\n".join(one.page_content for one in documents))
    chain = (
        {"context": found, "question": RunnablePassthrough()}
        | ChatPromptTemplate.from_template("Context:\n{context}\n\nQuestion: {question}")
        | FakeListChatModel(responses=["The lighthouse was built in 1911. Its builder was Robert Stevenson."])
        | StrOutputParser()
    )
    monitor = Monitor(sinks=[PhoenixSink(phoenix)])
    options: Any = {"callbacks": [CallbackHandler(monitor)], "run_name": "lighthouse"}
    chain.invoke("When was the lighthouse built, and by whom?", options)
    monitor.close(120)


def main() -> None:
    """Make results, look at them, keep what is seen."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(".pictures"))
    parser.add_argument("--docs", action="store_true")
    parser.add_argument("--phoenix", action="store_true")
    given = parser.parse_args()
    folder, images = given.folder.resolve(), Path("docs/images").resolve()
    folder.mkdir(exist_ok=True)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if given.phoenix:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            of_phoenix(browser, images if given.docs else folder)
            browser.close()
        return
    with tempfile.TemporaryDirectory() as made, chdir(made):
        write_fortnight("steelyard.db", now=time.time())
        SQLiteSink("empty.db").open()
        report("steelyard.db", by="version").write_html("report.html")
        servers, addresses = zip(*map(serving, ("steelyard.db", "empty.db")), strict=True)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            opened(browser, addresses[0], "light").close()  # what is looked for is there from then on
            if given.docs:
                of_docs(browser, addresses[0], Path("report.html").resolve(), images)
            else:
                of_states(browser, *addresses, folder)
            browser.close()
        for server in servers:
            server.should_exit = True
    with tempfile.TemporaryDirectory() as made, chdir(made):
        of_terminal(images if given.docs else folder)


if __name__ == "__main__":
    main()
