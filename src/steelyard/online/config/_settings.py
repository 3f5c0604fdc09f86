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

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, Self, get_origin, get_type_hints

from steelyard._internal.text import instead_of
from steelyard.alarms import DEFAULT_FILE
from steelyard.errors import ConfigurationError
from steelyard.online.config._plain import PlainOptions

_PREFIX = "STEELYARD_"
_FILE = "steelyard.toml"
_RESERVED = frozenset({"STEELYARD_CONFIG", "STEELYARD_INSTRUMENT"})


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

    @classmethod
    def of(cls, found: Mapping[str, tuple[Any, str]]) -> Self:
        """Check and convert what was found."""
        kinds = get_type_hints(Settings)
        values = {name: _convert(value, kinds[name], source, name) for name, (value, source) in found.items()}
        return cls(Settings(**values), {name: source for name, (_, source) in found.items()})


def load(environ: Mapping[str, str] | None = None, *, folder: Path | None = None) -> Loaded:
    """Read the file and the variables.

    Raises:
        ConfigurationError: If an option is unknown or has a value that it cannot have.
    """
    environ = os.environ if environ is None else environ
    found = _from_file(environ.get("STEELYARD_CONFIG"), folder or Path())
    for name, text in sorted(environ.items()):
        # A misspelt variable is refused: what it was to change would stay as it was, unseen.
        if name.startswith(_PREFIX) and name not in _RESERVED:
            option, _, entry = name.removeprefix(_PREFIX).lower().partition("__")
            _check_known(option, name)
            if entry:
                table, source = found.get(option, ({}, ""))
                sources = ", ".join(filter(None, [source, name]))
                found[option] = ({**_table(table, option, name), entry: _value(text)}, sources)
            else:
                value = _value(text)
                # A key or a path of digits is a text all the same.
                is_text = isinstance(getattr(Settings, option, None), str) and not isinstance(value, str)
                found[option] = (text if is_text else value, name)
    return Loaded.of(found)


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
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{path}: {error}; correct the file, or write it anew with `steelyard init --force`"
        ) from None
    except RecursionError:
        raise ConfigurationError(
            f"{path}: it is nested too deeply; write it anew with `steelyard init`"
        ) from None
    for name in data:
        _check_known(name, str(path))
    return {name: (value, str(path)) for name, value in data.items()}


def _check_known(option: str, where: str) -> None:
    names = [item.name for item in fields(Settings)]
    if option not in names:
        raise ConfigurationError(f"{where}: there is no option {option!r}; {instead_of(option, names)}")


def _value(text: str) -> Any:
    try:
        # As in the file: numbers, lists and tables are written alike in both.
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, KeyError, RecursionError):
        return text


def _table(value: Any, option: str, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ConfigurationError(
            f"{where}: {option!r} is not a table of entries; write [{option}] and its entries below"
        )
    return value


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
    if not isinstance(value, list):
        raise ConfigurationError(f"{source}: {name} must be of type list, not {value!r}")
    if not all(isinstance(one, str) for one in value):
        raise ConfigurationError(f"{source}: {name} must be a list of texts, not {value!r}")
    return value
