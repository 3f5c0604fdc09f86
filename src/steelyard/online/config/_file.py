"""`steelyard.toml` as a text: every option with its meaning and default, out of its one declaration."""

from __future__ import annotations

import ast
import inspect
import json
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import pairwise
from typing import Any

from steelyard.errors import ConfigurationError
from steelyard.online.config._plain import PlainOptions
from steelyard.online.config._settings import Settings

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


def settings_file(chosen: Mapping[str, Any]) -> str:
    """A `steelyard.toml` with these options set, and all others as comments.

    Args:
        chosen: By option, as `Settings` has them; no tables.

    Raises:
        ConfigurationError: If an option is a table, unknown, or has a value that it cannot have.
    """
    defaults = asdict(Settings(**_known(chosen)))
    told = meanings()
    names = [name for name in (*_FIRST, *defaults) if name not in _TABLES]
    pieces = [_HEAD]
    for name in dict.fromkeys(names):
        mark = "" if name in chosen else "#"
        # What JSON writes of texts, numbers, truth values and lists is TOML too.
        pieces.append(
            f"{_comment(told[name])}\n{mark}{name} = {json.dumps(defaults[name], ensure_ascii=False)}\n"
        )
    for name, example in _TABLES.items():
        pieces.append(f"{_comment(told[name])}\n{textwrap.indent(example, '#')}\n")
    return "\n".join(pieces)


def _known(chosen: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [name for name in chosen if name in _TABLES or name not in Settings.__dataclass_fields__]
    if unknown:
        raise ConfigurationError(f"{unknown[0]!r} cannot be set here; write it into the file by hand")
    return dict(chosen)


def meanings() -> dict[str, str]:
    """By option, what its docstring says."""
    return dict(meaning for kind in (PlainOptions, Settings) for meaning in _documented(kind))


def _documented(kind: type) -> Iterator[tuple[str, str]]:
    [declared] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(declared, ast.ClassDef)
    for option, below in pairwise(declared.body):
        match option, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(meaning))):
                yield name, " ".join(meaning.split())


def _comment(words: str) -> str:
    return textwrap.fill(words, _WIDTH, initial_indent="# ", subsequent_indent="# ")
