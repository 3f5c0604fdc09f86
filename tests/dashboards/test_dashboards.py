"""The shipped files are what the script builds, ask for metrics that exist, and their alerts work."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from steelyard.cli._app import build
from steelyard.dashboards import FILES, write_to

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "src" / "steelyard" / "dashboards" / "data"
RULES = DATA / "prometheus-rules.yaml"
SHOWS_SOON = 120.0

needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None, reason="Prometheus is not installed"
)

APPLICATION = """
import itertools, sys, time
from opentelemetry import metrics, trace
from opentelemetry.exporter.prometheus import PrometheusMetricReader
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from prometheus_client import generate_latest, start_http_server

metrics.set_meter_provider(MeterProvider(metric_readers=[PrometheusMetricReader()]))
trace.set_tracer_provider(TracerProvider())
server, _ = start_http_server(0, addr="127.0.0.1")
from steelyard.alarms import Alarm, AlarmSink
from steelyard.judge.middleware import CircuitBreaker
from steelyard.metrics import ContextRecall, Faithfulness
from steelyard.online import Budget, Monitor
from steelyard.questions import YesNo
from steelyard.record import Context, Record
from steelyard.sinks import OpenTelemetrySink
from steelyard.testing import ScriptedJudge

said = itertools.cycle([True, True, True, True, False])
monitor = Monitor(
    metrics=[Faithfulness(claims="sentences"), ContextRecall()],
    judge=CircuitBreaker(ScriptedJudge(lambda question, request: YesNo(value=next(said)))),
    sinks=[OpenTelemetrySink(), AlarmSink([Alarm(metric="faithfulness", below=0.5)], file=sys.argv[1])],
    budget=Budget(requests_per_day=100_000, cost_per_day=5.0),
)
number = 0
def judge_some():
    global number
    for _ in range(5):
        number += 1
        context = Context(text="Marie Curie found polonium in 1898.")
        monitor.submit(Record(id=f"r{number}", question="Who?", answer="Marie Curie.", contexts=(context,)))
    monitor.flush(60)
judge_some()
def seconds_of_a_scrape():
    before = time.thread_time()
    generate_latest()
    return time.thread_time() - before
print(server.server_port, min(seconds_of_a_scrape() for _ in range(5)), flush=True)
while True:
    time.sleep(0.5)
    judge_some()
"""


@dataclass(frozen=True)
class Application:
    """A program whose metrics the real Prometheus exporter serves."""

    address: str
    scrape: float
    """Processor seconds that a scrape takes."""


@contextmanager
def application(folder: Path) -> Iterator[Application]:
    program = subprocess.Popen(
        [sys.executable, "-c", APPLICATION, str(folder / "alarms.db")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=folder,
    )
    try:
        assert program.stdout is not None
        port, seconds = program.stdout.readline().split()
        yield Application(f"127.0.0.1:{port}", float(seconds))
    finally:
        program.kill()
        program.communicate()


def panels() -> list[dict[str, Any]]:
    board = json.loads((DATA / "grafana-steelyard.json").read_text())
    return [panel for panel in board["panels"] if panel["type"] != "row"]


def asked_by_panels() -> list[str]:
    return [target["expr"] for panel in panels() for target in panel["targets"]]


def documented() -> str:
    """The query that the documentation shows."""
    page = (ROOT / "docs" / "reference" / "emitted.md").read_text()
    [query] = re.findall(r"```promql\n(.*?)```", page, re.DOTALL)
    return str(query)


def queries() -> list[str]:
    rules = re.findall(r"expr: (?:>-)?(.*?)(?:\n +(?:- |for|labels)|\Z)", RULES.read_text(), re.DOTALL)
    return [documented(), *asked_by_panels(), *rules]


NOT_IN_EVERY_PROGRAM = {
    "gen_ai_evaluation_client_usage_cost_sum",  # where prices are known
    "steelyard:judge:cost_1d",
    "steelyard_judge_tokens_total",  # where the judge counts them
    "steelyard_evaluation_weighted_sum_negative_total",  # where values can be negative
}
"""What the application of these tests does not report."""


def test_the_shipped_dashboard_is_what_the_script_builds() -> None:
    pytest.importorskip("grafana_foundation_sdk")
    script = "import dashboards; print(dashboards.build(), end='')"
    built = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT / "scripts", capture_output=True, text=True, check=True
    )
    assert built.stdout == (DATA / "grafana-steelyard.json").read_text()


def test_every_panel_explains_itself() -> None:
    assert len(panels()) >= 15
    for panel in panels():
        assert len(panel["description"]) > 40, panel["title"]
        letters = [target["refId"] for target in panel["targets"]]
        assert all(letters)
        assert len(set(letters)) == len(letters)


def test_every_metric_that_is_asked_for_exists(tmp_path: Path) -> None:
    with application(tmp_path) as program:
        text = urllib.request.urlopen(f"http://{program.address}/metrics", timeout=30).read().decode()
    served = set(re.findall(r"^([a-z_:]+[a-z])(?:\{| )", text, re.MULTILINE))
    recorded = set(re.findall(r"record: (\S+)", RULES.read_text()))
    asked = {name for query in queries() for name in re.findall(r"\b(?:steelyard|gen_ai)[a-z_:0-9]+", query)}
    labels = set(re.findall(r"(\w+)=", text)) | {"steelyard_token_type"}
    assert asked - served - recorded - labels - NOT_IN_EVERY_PROGRAM == set()
    assert len(asked & served) >= 12


@needs_promtool
def test_the_alerts_fire_on_what_happens_and_not_before(tmp_path: Path) -> None:
    subprocess.run(["promtool", "check", "rules", RULES], check=True, capture_output=True)
    test = (ROOT / "tests" / "dashboards" / "rules_test.yaml").read_text()
    (tmp_path / "test.yaml").write_text(test.replace("RULES", str(RULES)))
    ran = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@needs_prometheus
def test_prometheus_scrapes_a_running_program_and_every_panel_has_data(tmp_path: Path) -> None:
    with application(tmp_path) as program:
        (tmp_path / "rules.yaml").write_text(RULES.read_text().replace("interval: 1m", "interval: 1s"))
        (tmp_path / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
            "rule_files: [rules.yaml]\n"
            f"scrape_configs: [{{job_name: app, static_configs: [{{targets: ['{program.address}']}}]}}]\n"
        )
        with prometheus(tmp_path) as server:
            for mean in ('steelyard:score:mean_1h{gen_ai_evaluation_name="faithfulness"}', documented()):
                wait_for(server, f"({mean}) > 0.75 < 0.85")
            for query in asked_by_panels():
                if not any(name in query for name in NOT_IN_EVERY_PROGRAM):
                    wait_for(server, query.replace("$metric", ".+").replace("$__rate_interval", "30s"))
            assert wait_for(server, "steelyard_alarm_fallen")["value"][1] == "0"
            limit = 'steelyard_budget_limit{steelyard_budget_name="requests_per_day"}'
            assert wait_for(server, limit)["value"][1] == "100000"
    assert program.scrape < 0.05


@contextmanager
def prometheus(folder: Path) -> Iterator[str]:
    log = folder / "prometheus.log"
    with log.open("w") as opened:
        server = subprocess.Popen(
            [
                *("prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data"),
                "--web.listen-address=127.0.0.1:0",
            ],
            cwd=folder,
            stdout=opened,
            stderr=subprocess.STDOUT,
        )
    try:
        until = time.monotonic() + SHOWS_SOON
        while not (said := re.search(r"address=(127\.0\.0\.1:(?!0\b)\d+)", log.read_text())):
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        yield said[1]
    finally:
        server.terminate()
        server.wait(120)


def wait_for(server: str, query: str) -> dict[str, Any]:
    url = f"http://{server}/api/v1/query?query={urllib.request.quote(query)}"  # type: ignore[attr-defined]
    until = time.monotonic() + SHOWS_SOON
    while time.monotonic() < until:
        with contextlib.suppress(urllib.error.HTTPError):  # 503 while it starts
            with urllib.request.urlopen(url, timeout=30) as reply:
                found: list[dict[str, Any]] = json.load(reply)["data"]["result"]
            if found and found[0]["value"][1] != "NaN":
                return found[0]
        time.sleep(0.3)
    raise AssertionError(f"{query} has no value")


def test_the_command_writes_the_files_and_says_what_to_do_with_them(tmp_path: Path) -> None:
    done = CliRunner().invoke(build(), ["dashboards", "--out", str(tmp_path / "made")])
    assert done.exit_code == 0
    assert "rule_files" in done.output and "Import" in done.output
    shipped = "".join((DATA / name).read_text() for name in FILES)
    assert "docs/" not in done.output + shipped, "an installation has no such page"
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == sorted(FILES)
    (tmp_path / "made" / FILES[0]).write_text("edited")
    write_to(tmp_path / "made")
    assert json.loads((tmp_path / "made" / FILES[0]).read_text())["uid"] == "steelyard"
