"""Settings: one precedence, loud mistakes, and a command that shows what is in force."""

from __future__ import annotations

import inspect
import json
import re
import runpy
import signal
import subprocess
import time
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import programs
from online.helpers import FAITHFUL, finish, kind_judge, turn
from steelyard.errors import ConfigurationError
from steelyard.judge import LocalJudge
from steelyard.metrics import Metric
from steelyard.online import Monitor, MonitorOptions, Settings, SpoolSettings, load_settings, settings_file
from steelyard.online._settings import PlainOptions, meanings
from steelyard.sinks import Sink, read_evaluations

_FILE = """
sample_rate = 0.2
concurrency = 3
metrics = ["faithfulness"]

[[rules]]
tags = ["vip"]
rate = 1.0

[suspicion]
rate = 0.5

[budget]
requests_per_day = 100
"""


def test_variables_come_before_the_file_and_the_file_before_defaults(tmp_path: Path) -> None:
    (tmp_path / "steelyard.toml").write_text(_FILE)
    environ = {
        "STEELYARD_SAMPLE_RATE": "0.1",
        "STEELYARD_BUDGET__COST_PER_DAY": "5",
        "STEELYARD_BUDGET__REQUESTS_PER_DAY": "7",
        "STEELYARD_STORE_CONTENT": "false",
        "STEELYARD_METRICS": "faithfulness, context_relevancy",
        "STEELYARD_INSTRUMENT": "1",
        "OTHER": "x",
    }
    loaded = load_settings(environ, folder=tmp_path)
    settings = loaded.settings
    assert (settings.sample_rate, settings.concurrency, settings.deadline) == (0.1, 3, 120.0)
    assert settings.budget == {"requests_per_day": 7, "cost_per_day": 5}
    assert settings.metrics == ["faithfulness", "context_relevancy"]
    assert settings.store_content is False
    assert loaded.sources["sample_rate"] == "STEELYARD_SAMPLE_RATE"
    assert loaded.sources["concurrency"] == str(tmp_path / "steelyard.toml")
    assert "deadline" not in loaded.sources
    assert load_settings({}, folder=tmp_path / "nowhere").settings == Settings()


def test_code_comes_before_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(_FILE)
    monkeypatch.setenv("STEELYARD_CONFIG", str(tmp_path / "my.toml"))
    monkeypatch.setenv("STEELYARD_SAMPLE_RATE", "0")
    silent = Monitor(metrics=[], sinks=[])
    silent.submit(turn())
    assert (silent.flush(60), silent.stats().skipped) == (0, {"sampled_out": 1})
    vip = Monitor(metrics=[], sinks=[])
    vip.submit(turn(tags=("vip",)))
    assert (vip.flush(60), vip.stats().evaluated) == (0, 1)
    loud = Monitor(metrics=[], sinks=[], sample_rate=1.0)
    loud.submit(turn())
    assert (loud.flush(60), loud.stats().evaluated) == (0, 1)
    for monitor in (silent, vip, loud):
        monitor.close()


def test_a_spool_that_code_names_keeps_what_else_settings_say_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "my.toml").write_text('spool = {path = "a.db", lease_seconds = 77.0}')
    monkeypatch.setenv("STEELYARD_CONFIG", str(tmp_path / "my.toml"))
    monitor = Monitor(metrics=[], sinks=[], spool=tmp_path / "b.db")
    monitor.close()
    assert monitor.options.spool == SpoolSettings(path=tmp_path / "b.db", lease_seconds=77.0)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"STEELYARD_SAMPEL_RATE": "1"}, "did you mean 'sample_rate'"),
        ({"STEELYARD_SAMPLE_RATE": "many"}, "sample_rate must be of type float, not 'many'"),
        ({"STEELYARD_CONCURRENCY": "true"}, "concurrency must be of type int"),
        ({"STEELYARD_CONFIG": "nowhere.toml"}, "which is not there"),
        ({"STEELYARD_JUDGE__MODEL": "x"}, "must be of type str"),
        ({"STEELYARD_JUDGE": "local", "STEELYARD_JUDGE__MODEL": "x"}, "'judge' is not a table of entries"),
    ],
)
def test_mistakes_are_named(environ: dict[str, str], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=message):
        load_settings(environ, folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SAMPLE_RATE", "2", "sample_rate must be a number from 0 to 1"),
        ("METRICS", "faithfullness", "faithfullness"),
        ("SINKS", "oracle:x", "there is no sink 'oracle'"),
        ("BUDGET__EUROS", "5", "budget: .*euros"),
        ("JUDGE", "gpt-4o", "no judge 'gpt-4o'"),
        ("BUDGET__COST_PER_DAY", "five", "budget: cost_per_day must be a number, not 'five'"),
        ("SUSPICION__RATE", "7", "rate of Suspicion"),
        ("SUSPICION__REFUSALS", "1", "suspicion: refusals must be true or false, not 1"),
        ("CANARIES__PROBES", "many", "canaries: probes must be a whole number, not 'many'"),
        ("SPOOL__PTH", "turns.db", "spool: there is no entry 'pth'; did you mean 'path'"),
        ("SPOOL__EVALUATE", "false", "spool: path is missing"),
        ("FUSE", "all", "fuse must be one of"),
    ],
)
def test_a_monitor_refuses_wrong_settings(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"STEELYARD_{name}", value)
    with pytest.raises(ConfigurationError, match=message):
        Monitor()


def test_without_anything_it_works_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monitor = Monitor()
    # Behind no breaker: it is part of this process.
    assert isinstance(monitor.options.judge, LocalJudge)
    finish(monitor, [turn("first")])
    monitor.close()
    [evaluation] = read_evaluations(tmp_path / "steelyard.db")
    assert evaluation.record_id == "first"
    values = {score.metric: score.hard_value for score in evaluation.scores if score.status == "scored"}
    assert values["faithfulness"] == 1.0


def test_a_folder_that_is_read_only_keeps_results_in_memory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    monitor = Monitor(metrics=[])
    finish(monitor, [turn()])
    stats = monitor.stats()
    monitor.close()
    assert stats.evaluated == 1 and stats.sinks["sqlite::memory:"].written == 1
    assert list(tmp_path.iterdir()) == []
    assert len([record for record in caplog.records if "cannot be written to" in record.message]) == 1


def test_a_price_may_be_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEELYARD_BUDGET__COST_PER_DAY", "5")
    monkeypatch.setenv("STEELYARD_BUDGET__PRICE", "gpt-4o-mini")
    Monitor(metrics=[], sinks=[])
    monkeypatch.setenv("STEELYARD_BUDGET__PRICE", "nobody-9")
    with pytest.raises(ConfigurationError, match="nobody-9"):
        Monitor(metrics=[], sinks=[])


def test_every_variable_that_pages_name_or_a_platform_sets_is_taken() -> None:
    pages = [*Path("docs").rglob("*.md"), *Path("src").rglob("*.py")]
    named = {name for page in pages for name in re.findall(r"STEELYARD_[A-Z_]*[A-Z]", page.read_text())}
    assert named >= {"STEELYARD_COLLECT_TOKEN", "STEELYARD_VIEW_TOKEN", "STEELYARD_SAMPLE_RATE"}
    service = ("SERVICE_HOST", "PORT", "PORT_4318_TCP_ADDR", "COLLECT_SERVICE_PORT_HTTP")
    for name in (*named, *(f"STEELYARD_{rest}" for rest in service)):
        try:
            load_settings({name: "words"})
        except ConfigurationError as error:
            assert "there is no option" not in str(error), name


def test_a_file_that_is_no_toml(tmp_path: Path) -> None:
    (tmp_path / "steelyard.toml").write_text("sample_rate: 0.1")
    with pytest.raises(ConfigurationError, match="steelyard.toml"):
        load_settings({}, folder=tmp_path)


PLAIN = {field.name: field for field in fields(PlainOptions)}
ROOT = Path(__file__).parents[2]
WRITTEN = runpy.run_path(str(ROOT / "scripts" / "configuration.py"))


def test_the_monitors_parameters_are_its_options() -> None:
    parameters = set(inspect.signature(Monitor).parameters)
    assert parameters == {field.name for field in fields(MonitorOptions)} | {"sample_rate"}
    documented = " ".join((Monitor.__init__.__doc__ or "").split())
    for name in PLAIN:
        assert f"{name}: {meanings()[name]}" in documented


def test_code_can_set_every_plain_option() -> None:
    other: dict[str, Any] = {
        "store_content": False,
        "fuse": "off",
        "user_key": "k" * 16,
        "sample_key": "s" * 16,
        "screen_rate": 0.5,
        "screen_floor": 0.5,
        "screen_file": "screen.json",
    }
    for name, field in PLAIN.items():
        value = other.get(name, 7)
        assert value != field.default
        monitor = Monitor(metrics=[], sinks=[], **{name: value})
        assert getattr(monitor.options, name) == value
        assert [key for key in PLAIN if getattr(monitor.options, key) != PLAIN[key].default] == [name]


def test_the_table_of_options_in_the_docs_is_the_code() -> None:
    """`python scripts/configuration.py` was run."""
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    assert page.endswith(WRITTEN["table"]())


def test_the_file_and_the_variables_in_the_docs_mean_the_same(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "configuration.md").read_text()
    [file] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (tmp_path / "steelyard.toml").write_text(file)
    written = load_settings({}, folder=tmp_path).settings
    assert (written.judge, written.metrics) == ("openai:gpt-4o-mini", ["faithfulness", "context_utilization"])
    told = page.partition("The same as variables:")[2].partition("\n\n")[0]
    variables = dict(each.split("=", 1) for each in re.findall(r"`(STEELYARD_\w+=[^`]+)`", told))
    assert len(variables) == 4
    given = load_settings(variables, folder=tmp_path / "nowhere").settings
    assert (given.sample_rate, given.metrics) == (written.sample_rate, written.metrics)
    assert given.budget["cost_per_day"] == written.budget["cost_per_day"]
    assert given.spool["path"] == written.spool["path"]


def steelyard(*arguments: str, cwd: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": "/usr/bin:/bin", **environ}
    return programs.run([*programs.STEELYARD, *arguments], ours=True, cwd=cwd, env=env, timeout=150)


def test_the_config_command(tmp_path: Path) -> None:
    (tmp_path / "steelyard.toml").write_text(_FILE)
    shown = steelyard(
        *("config", "--json"),
        cwd=tmp_path,
        STEELYARD_JUDGE="openai:stub",
        STEELYARD_BASE_URL="http://me:secret@127.0.0.1:1/v1?api_key=very-secret#secret",
        OPENAI_API_KEY="sk-very-secret",
    )
    assert shown.returncode == 0, shown.stderr
    data: dict[str, Any] = json.loads(shown.stdout)
    assert data["options"]["base_url"] == "http://127.0.0.1:1/v1"
    assert data["options"]["concurrency"] == 3
    assert data["sources"]["judge"] == "STEELYARD_JUDGE"
    assert data["sources"]["deadline"] == "default"
    assert data["options"].keys() == data["sources"].keys() == {field.name for field in fields(Settings)}
    assert "secret" not in shown.stdout
    plain = steelyard("config", cwd=tmp_path)
    assert "sample_rate      0.2   (steelyard.toml)" in plain.stdout
    assert 'metrics          ["faithfulness"]   (steelyard.toml)' in plain.stdout
    bare = steelyard("config", "--json", cwd=tmp_path, STEELYARD_CONFIG="/dev/null")
    monitor = Monitor(sinks=[])
    running = [metric.name for metric in monitor.options.metrics]
    assert len(running) > 1
    assert json.loads(bare.stdout)["options"]["metrics"] == running
    wrong = steelyard("config", cwd=tmp_path, STEELYARD_SPOOL="/no/such/folder/s.db")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("steelyard: the spool's folder '/no/such/folder' does not exist")


def test_the_worker_command(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    spool = SpoolSettings(path=path, evaluate=False)
    host = Monitor(metrics=FAITHFUL, judge=kind_judge(), sinks=[], spool=spool)
    finish(host, (turn(f"turn {number}") for number in range(5)))
    done = steelyard("worker", "--spool", str(path), "--once", cwd=tmp_path, STEELYARD_SINKS="sqlite:out.db")
    assert done.returncode == 0, done.stderr
    evaluations = list(read_evaluations(tmp_path / "out.db"))
    assert {evaluation.record_id for evaluation in evaluations} == {f"turn {number}" for number in range(5)}
    assert all(any(score.status == "scored" for score in e.scores) for e in evaluations)
    counts = host.stats().spool
    assert counts is not None and (counts.evaluated, counts.pending, counts.undelivered) == (5, 0, 0)


def test_the_worker_command_stops_on_sigterm(tmp_path: Path) -> None:
    command = [*programs.STEELYARD, "worker", "--spool", "s.db"]
    worker = programs.start(command, ours=True, live=True, cwd=tmp_path)
    assert worker.stderr is not None
    assert "judging what comes into s.db" in worker.stderr.readline()
    time.sleep(0.3)
    worker.send_signal(signal.SIGTERM)
    _, errors = worker.communicate(timeout=150)
    assert worker.returncode == 0
    assert "stopped after 0 requests" in errors and "Traceback" not in errors


def test_the_worker_command_needs_a_spool_that_works(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_text("no database" * 1000)
    done = steelyard("worker", "--spool", "s.db", cwd=tmp_path)
    assert done.returncode == 2
    assert "s.db' is a file of another program" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "there is nothing to work on"),
        (("--queue", "turns.db"), "--queue needs a broker's URL"),
        (("--spool", "turns.db", "--queue", "nats://127.0.0.1:1"), "not both"),
    ],
)
def test_a_worker_must_know_what_to_work_on(options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = steelyard("worker", *options, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr and "Traceback" not in done.stderr


def test_garbage_is_always_a_configuration_error(tmp_path: Path) -> None:
    (tmp_path / "steelyard.toml").write_text("metrics = " + "[" * 100_000)
    with pytest.raises(ConfigurationError):
        load_settings({}, folder=tmp_path)
    for value in ("[" * 100_000, "9" * 10_000, "\ud800", "nan\nx = 1"):
        with pytest.raises(ConfigurationError):
            load_settings({"STEELYARD_CONCURRENCY": value}, folder=tmp_path / "none")


def test_the_file_of_settings_explains_every_option_and_all_of_it_can_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = settings_file({"sinks": ["jsonl:a \u00fc\\.jsonl"], "sample_key": "k" * 20})
    Path("steelyard.toml").write_text(text, encoding="utf-8")
    alone = load_settings()
    assert alone.settings == Settings(sinks=["jsonl:a \u00fc\\.jsonl"], sample_key="k" * 20)
    assert alone.sources.keys() == {"sinks", "sample_key"}
    # With the mark of defaults and examples taken away, every option is there, and a Monitor takes them.
    Path("steelyard.toml").write_text(re.sub(r"^#(?! )", "", text, flags=re.MULTILINE), encoding="utf-8")
    assert load_settings().sources.keys() == {field.name for field in fields(Settings)}
    Monitor().close()
    with pytest.raises(ConfigurationError, match="'budget' cannot be set here; write it"):
        settings_file({"budget": {}})


ODD = (
    *("", " ", "-1", "0", "1e400", "inf", "-inf", "nan", "1e308", "9" * 40, "-" + "9" * 40, "true", "0x10"),
    *(
        "[]",
        "{}",
        "[1]",
        "{a=1}",
        "[[1]]",
        "'x'",
        "\udcff",
        "1979-05-27",
        "07:32:00",
        "x" * 10_000,
        "../..",
        "/",
    ),
    *("{path=1}", "{model=1}", "[{a=1}]", "[{name=1}]", "nats://", "openai:", ":", "sqlite:", "jsonl:"),
    *("/", "postgresql://[", "http://["),
)
_ENTRIES = {
    "budget": ("cost_per_day", "requests_per_hour", "price"),
    "spool": ("path", "max_bytes", "lease_seconds", "durability", "evaluate"),
    "suspicion": ("rate",),
    "canaries": ("rate", "share"),
    "metric_rates": ("faithfulness",),
}
NAMES = (
    *(field.name for field in fields(Settings)),
    *(f"{table}__{entry}" for table, entries in _ENTRIES.items() for entry in entries),
)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_an_odd_value_is_refused_or_means_something(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    variable = f"STEELYARD_{name.upper()}"
    metrics: list[Metric] | None = None if name == "metrics" else []
    sinks: list[Sink] | None = None if name.startswith(("sinks", "alarm")) else []
    for value in ODD:
        monkeypatch.setenv(variable, value)
        try:
            monitor = Monitor(metrics=metrics, sinks=sinks)
        except ConfigurationError:
            continue
        # No time in which nothing can be judged, masked or written is taken.
        assert all(getattr(monitor.options, one) > 0 for one in ("deadline", "mask_timeout", "sink_timeout"))
        # A time that was taken is one that a thread can wait for.
        assert monitor.close(monitor.options.exit_timeout) == 0
