"""Settings from outside the program: environment variables and a TOML file.

What code passes to `Monitor(...)` comes first, then `STEELYARD_*` variables, then the file, then the default.
The file is the one that `STEELYARD_CONFIG` names, else `steelyard.toml` in the working directory, if it is
there. A variable is the option in capitals, with two underscores before an entry of a table; its value is
read as a TOML value if it is one, and as text otherwise:

    STEELYARD_SAMPLE_RATE=0.1
    STEELYARD_METRICS=faithfulness,answer_relevancy
    STEELYARD_BUDGET__COST_PER_DAY=5
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import textwrap
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from threading import TIMEOUT_MAX
from typing import Any, Literal, get_args, get_origin, get_type_hints

from steelyard._internal.text import instead_of
from steelyard.alarms import DEFAULT_FILE
from steelyard.errors import ConfigurationError
from steelyard.online._selection import checked_rate
from steelyard.questions import Fuse
from steelyard.record import check_user_key

_PREFIX = "STEELYARD_"
_FILE = "steelyard.toml"
_RESERVED = frozenset(f"STEELYARD_{name}" for name in ("CONFIG", "INSTRUMENT", "COLLECT_TOKEN", "VIEW_TOKEN"))
_OF_PLATFORM = ("_SERVICE_", "_PORT")
"""Kubernetes gives every pod variables with these, named after the services beside it: `steelyard`, say."""
_WHOLE = ("concurrency", "max_queue", "max_queue_bytes")
_SECONDS = ("deadline", "mask_timeout", "sink_timeout")
_MAY_BE_NONE = ("exit_timeout", "throttle")
_SHARES = ("screen_rate", "screen_floor")
_MOST = 2**40
_LEAST_SHARE = 0.1
"""With less, a turn's weight would be more than ten times the usual."""
_WIDTH = 100
_HEAD = """\
# Settings of Steelyard. `steelyard config` shows which are in force, and where each comes from.
# First comes what code passes to `Monitor(...)`, then variables (STEELYARD_SAMPLE_RATE), then this file.
# A line that begins with `#` and no blank is a default or an example: take the `#` away to use it.
"""
_FIRST = ("judge", "base_url", "metrics", "sample_rate", "sample_key", "sinks")
_TABLES: Mapping[str, str] = {
    "alarm": '[[alarm]]\nmetric = "faithfulness"\nfalls_by = 0.05\nto = ["log"]',
    "budget": "[budget]\nrequests_per_day = 10000",
    "rules": '[[rules]]\ntags = ["vip"]\nrate = 1.0',
    "metric_rates": "[metric_rates]\nfaithfulness = 0.5",
    "suspicion": "[suspicion]\nmin_overlap = 0.3",
    "spool": '[spool]\npath = "steelyard-spool.db"',
    "canaries": "[canaries]\nshare = 0.02",
}
"""An example of each table; TOML wants tables behind everything else."""


@dataclass(frozen=True, kw_only=True)
class PlainOptions:
    """Numbers, switches and words: their names, types, defaults, meaning and checks stand here only."""

    store_content: bool = True
    """Whether results carry the turn's texts; without, they have numbers and positions."""
    score_guesses: bool = False
    """Whether turns are judged by passages that were guessed from a prompt."""
    user_key: str = field(default="", repr=False)
    """The key under which users are hashed; empty: who asked is not stored."""
    sample_key: str = field(default="", repr=False)
    """The key of the hash that picks turns; empty: callers can choose what is picked."""
    fuse: Fuse = "view"
    """How questions share requests: `view`, `record` or `off`."""
    concurrency: int = 8
    """Turns judged at the same time."""
    deadline: float = 120.0
    """Seconds for judging one turn."""
    mask_timeout: float = 10.0
    """Seconds that a mask may take."""
    sink_timeout: float = 10.0
    """Seconds for one write to a sink."""
    max_queue: int = 10_000
    """Turns that may wait; the newest is dropped if there are more."""
    max_queue_bytes: int = 64 * 1024 * 1024
    """Roughly how many bytes they may keep alive."""
    exit_timeout: float = 5.0
    """Seconds that `close` and the end of the program wait for what is pending."""
    throttle: float = 0.0
    """Turns judged per minute at most; 0 for no limit."""
    screen_rate: float = 1.0
    """With a screen: the share of turns that it scores."""
    screen_floor: float = 0.3
    """With a screen: the share of its own rate that every turn keeps, however sure the screen is of it."""
    screen_file: str = ""
    """With a screen: the file that keeps what it has learnt from the judge; empty: it learns nothing."""

    @property
    def least_share(self) -> float:
        """With a screen: what no turn's rate is multiplied by less of, so that no turn is impossible."""
        return max(self.screen_floor, _LEAST_SHARE)

    def __post_init__(self) -> None:
        for name in _WHOLE:
            value = getattr(self, name)
            # True is a whole number to Python, and never meant as one.
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value < _MOST:
                raise ConfigurationError(f"{name} must be a whole number of at least 1, not {value!r}")
        for name in (*_SECONDS, *_MAY_BE_NONE):
            _check_amount(name, getattr(self, name))
        for name in _SHARES:
            checked_rate(getattr(self, name), name)
        check_user_key(self.user_key)
        check_user_key(self.sample_key, "sample_key")
        if self.fuse not in get_args(Fuse):
            raise ConfigurationError(f"fuse must be one of {', '.join(get_args(Fuse))}, not {self.fuse!r}")


def _check_amount(name: str, value: Any) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= TIMEOUT_MAX or (name in _SECONDS and not value):
        unit = "turns a minute" if name == "throttle" else "seconds"
        least = "" if name in _MAY_BE_NONE else " above 0"
        raise ConfigurationError(f"{name} must be a number of {unit}{least}, not {value!r}")


@dataclass(frozen=True, kw_only=True)
class Settings(PlainOptions):
    """Every option of a Monitor that can be written down; the names are those of `Monitor` itself."""

    judge: str = "local"
    """Who judges: `local` needs no key and no network; else `openai:MODEL`, `decisions:MODEL` or
    `pair:FILE`."""
    base_url: str = ""
    """The address of the judge's server, if it is another than OpenAI's and speaks its language."""
    screen: str = ""
    """A second judge, by name, that sees every turn, so that the judge need see only a share; empty: none."""
    metrics: list[str] = field(default_factory=list)
    """Names of metrics; the judge's default suite if there are none."""
    metric_rates: dict[str, float] = field(default_factory=dict)
    """By metric: the share of picked turns that it scores."""
    sample_rate: float = 1.0
    """The share of turns to judge."""
    rules: list[dict[str, Any]] = field(default_factory=list)
    """Turns that are judged at a rate of their own, by tag, route, metadata or status: entries of `Rule`."""
    suspicion: dict[str, Any] = field(default_factory=dict)
    """Judges turns that look bad more often: entries of `Suspicion`; none at all means no suspicion."""
    sinks: list[str] = field(default_factory=lambda: ["auto"])
    """Where results go: `sqlite:FILE`, `jsonl:FILE`, `postgresql://HOST/DATABASE`, `opentelemetry`,
    `phoenix`, `langfuse`, `mlflow`, `langsmith`, `datadog`; `auto` is steelyard.db and, where it is
    installed, OpenTelemetry."""
    alarm: list[dict[str, Any]] = field(default_factory=list)
    """Tells you when scores fall: entries of `Alarm`, one `[[alarm]]` each."""
    alarm_file: str = DEFAULT_FILE
    """Keeps what alarms know and what they have still to report."""
    budget: dict[str, Any] = field(default_factory=dict)
    """What judging may use up: entries of `Budget`; `price` is a table with `input` and `output`, or the name
    of a model."""
    spool: dict[str, Any] = field(default_factory=dict)
    """Keeps picked turns until they are judged, whatever crashes: entries of `SpoolSettings`, or only its
    `path`: a file or a broker's address. None: no spool."""
    calibration: str = ""
    """A file that `steelyard calibrate` wrote: scores then carry calibrated values beside their own."""
    canaries: dict[str, Any] = field(default_factory=dict)
    """Entries of `Canaries`: probes with a known answer that show when the judge changes; none at all means
    no canaries."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings, and where each comes from."""

    settings: Settings
    sources: Mapping[str, str]
    """By option: the variable or file; options not named have their default."""


def load_settings(environ: Mapping[str, str] | None = None, *, folder: Path | None = None) -> Loaded:
    """Read the file and the variables.

    Raises:
        ConfigurationError: If an option is unknown or has a value that it cannot have.
    """
    environ = os.environ if environ is None else environ
    kinds = get_type_hints(Settings)
    found = _from_file(environ.get("STEELYARD_CONFIG"), folder or Path())
    for name, text in sorted(environ.items()):
        # A misspelt variable is refused: what it was to change would stay as it was, unseen.
        if _is_option(name):
            option, _, entry = name.removeprefix(_PREFIX).lower().partition("__")
            _check_known(option, name)
            value = _value(text)
            if entry:
                table, source = found.get(option, ({}, ""))
                if not isinstance(table, dict):
                    raise ConfigurationError(
                        f"{name}: {option!r} is not a table of entries; "
                        f"write [{option}] and its entries below"
                    )
                found[option] = ({**table, entry: value}, ", ".join(filter(None, [source, name])))
            else:
                # A key or a path of digits is a text all the same.
                found[option] = (text if kinds[option] is str and not isinstance(value, str) else value, name)
    values = {name: _convert(value, kinds[name], source, name) for name, (value, source) in found.items()}
    return Loaded(Settings(**values), {name: source for name, (_, source) in found.items()})


def _is_option(name: str) -> bool:
    """Whether a variable is to set an option."""
    return (
        name.startswith(_PREFIX) and name not in _RESERVED and not any(part in name for part in _OF_PLATFORM)
    )


def _from_file(named: str | None, folder: Path) -> dict[str, tuple[Any, str]]:
    path = Path(named) if named else folder / _FILE
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if named:
            raise ConfigurationError(
                f"STEELYARD_CONFIG names {named!r}, which is not there; "
                "correct the path, or unset the variable"
            ) from None
        return {}
    except (OSError, ValueError, RecursionError) as error:
        problem = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ConfigurationError(
            f"{path}: {problem}; correct the file, or write it anew with `steelyard init --force`"
        ) from None
    for name in data:
        _check_known(name, str(path))
    return {name: (value, str(path)) for name, value in data.items()}


def _check_known(option: str, where: str) -> None:
    names = list(Settings.__dataclass_fields__)
    if option not in names:
        raise ConfigurationError(f"{where}: there is no option {option!r}; {instead_of(option, names)}")


def _value(text: str) -> Any:
    try:
        # As in the file: numbers, lists and tables are written alike in both.
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):
        return text


def _convert(value: Any, kind: Any, source: str, name: str) -> Any:
    if kind == list[str]:
        return _names(value, source, name)
    if isinstance(value, str) and name == "spool":
        return {"path": value}
    wanted = str if get_origin(kind) is Literal else get_origin(kind) or kind
    if wanted is float and type(value) is int:
        return float(value)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise ConfigurationError(f"{source}: {name} must be of type {wanted.__name__}, not {value!r}")
    return value


def _names(value: Any, source: str, name: str) -> list[str]:
    """Names in a list, or in a text with commas between them."""
    if isinstance(value, str):
        return list(filter(None, map(str.strip, value.split(","))))
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise ConfigurationError(f"{source}: {name} must be a list of texts, not {value!r}")
    return value


def settings_file(chosen: Mapping[str, Any]) -> str:
    """A `steelyard.toml` with these options set, and all others as comments.

    Args:
        chosen: By option, as `Settings` has them; no tables.

    Raises:
        ConfigurationError: If an option is a table, unknown, or has a value that it cannot have.
    """
    for name in chosen:
        if name in _TABLES or name not in Settings.__dataclass_fields__:
            raise ConfigurationError(f"{name!r} cannot be set here; write it into the file by hand")
    defaults = asdict(Settings(**chosen))
    told = meanings()
    pieces = [_HEAD]
    for name in dict.fromkeys((*_FIRST, *defaults)):
        if name not in _TABLES:
            # What JSON writes of texts, numbers, truth values and lists is TOML too.
            line = f"{name} = {json.dumps(defaults[name], ensure_ascii=False)}\n"
            pieces.append(f"{_comment(told[name])}\n{'' if name in chosen else '#'}{line}")
    for name, example in _TABLES.items():
        pieces.append(f"{_comment(told[name])}\n{textwrap.indent(example, '#')}\n")
    return "\n".join(pieces)


def meanings() -> dict[str, str]:
    """By option, what its docstring says."""
    found = {}
    for kind in (PlainOptions, Settings):
        [declared] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        assert isinstance(declared, ast.ClassDef)
        for option, below in pairwise(declared.body):
            match option, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                    found[name] = " ".join(said.split())
    return found


def _comment(words: str) -> str:
    return textwrap.fill(words, _WIDTH, initial_indent="# ", subsequent_indent="# ")
