"""The judge that a command line names. A remote one is named or it is not used, whatever keys lie around."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from steelyard.cli._terminal import figures_table
from steelyard.engine import check_names
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.judge import OpenAIEmbedder, StaticEmbedder, judge_from
from steelyard.metrics import Metric, default_metrics, parse_metrics
from steelyard.questions import Embedder, Judge
from steelyard.scores import Usage

FREE = "This judge asks nobody: no requests, no tokens, no price."


def price_of(usage: Usage, *, model: str, base_url: str | None) -> tuple[float | None, str]:
    """The price in dollars, None where none is known, and its source or why there is none."""
    from steelyard.online import Price

    try:
        return Price.listed(usage, model=model, base_url=base_url)
    except MissingDependency:
        return None, "no prices: pip install 'steelyard[prices]'"
    except ConfigurationError as error:
        return None, str(error).partition(";")[0]


def price_words(judge: JudgeChoice, usage: Usage) -> str:
    """What a judge's tokens cost; empty for a judge that costs nothing."""
    if judge.is_here or not usage.prompt_tokens:
        return ""
    dollars, source = price_of(usage, model=judge.chosen_model, base_url=judge.base_url)
    return source if dollars is None else f"about ${dollars:.4f} ({source})"


def price_of_all(usage: Mapping[str, Usage], base_url: str | None) -> tuple[float | None, list[str]]:
    """What all models cost together, if all prices are known, and where each comes from."""
    found = [price_of(spent, model=model, base_url=base_url) for model, spent in usage.items()]
    known = [dollars for dollars, _ in found if dollars is not None]
    return sum(known) if len(known) == len(found) else None, list(dict.fromkeys(line for _, line in found))


def plan_table(usage: Usage, price: float | None, sampled: int, total: int | None) -> Table:
    """What some records would take, and all of the file, if their number is known."""
    table = figures_table("Estimate", "Requests", "Tokens in", "Tokens out", "Price")
    scales = [("per record", 1 / sampled)]
    if total:
        scales.append((f"all {total:,}", total / sampled))
    for name, scale in scales:
        table.add_row(
            name,
            f"{usage.requests * scale:,.1f}" if scale < 1 else f"{usage.requests * scale:,.0f}",
            f"{usage.prompt_tokens * scale:,.0f}",
            f"{usage.completion_tokens * scale:,.0f}",
            "-"
            if price is None
            else f"${price * scale:,.4f}"
            if price * scale < 1
            else f"${price * scale:,.2f}",
        )
    return table


_MODELS = {"openai": "gpt-4o-mini", "decisions": "gpt-6-luna"}
_HERE = ("local", "pair")
_KINDS = (*_HERE, *_MODELS)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeChoice:
    """What was typed about the judge."""

    kind: str
    """`local`, `pair`, `openai` or `decisions`."""
    model: str | None = None
    """What follows the kind, or `--model`; for `pair` the model's file."""
    extractor: str | None = None
    """`--extractor`."""
    embedder: str | None = None
    """`--embedder`."""
    base_url: str | None = None
    """`--base-url`."""
    key_variable: str | None = None
    """`--api-key-env`."""
    concurrency: int = 16
    """`--concurrency`."""

    @classmethod
    def named(
        cls,
        judge: str,
        *,
        model: str = "",
        extractor: str = "",
        embedder: str = "",
        base_url: str = "",
        key_variable: str = "",
        concurrency: int = 16,
    ) -> JudgeChoice:
        """The judge that `--judge` and the options beside it name; an empty option was not given."""
        kind, _, inside = judge.partition(":")
        kind = "openai" if kind == "chat" else kind
        if kind not in _KINDS:
            raise ConfigurationError(
                f"no judge {judge!r}; there are 'local', 'openai:MODEL', 'decisions:MODEL' and 'pair:FILE'"
            )
        if inside and model:
            raise ConfigurationError(f"--judge {judge} names a model already; leave out --model")
        return cls(
            kind=kind,
            model=inside or model or None,
            extractor=extractor or None,
            embedder=embedder or None,
            base_url=base_url or None,
            key_variable=key_variable or None,
            concurrency=concurrency,
        )

    def __post_init__(self) -> None:
        """Refuse options that do not go together."""
        remote = (self.model, self.base_url, self.key_variable, self.embedder)
        if self.kind == "local" and any(remote):
            raise ConfigurationError(
                "--model, --embedder, --base-url and --api-key-env need --judge openai or --judge decisions"
            )
        if self.kind == "pair" and (not self.model or any(remote[1:])):
            raise ConfigurationError(
                "--judge pair needs --model FILE, an ONNX model, and no server: it runs here"
            )
        if self.extractor and self.kind != "decisions":
            raise ConfigurationError(
                "--extractor needs --judge decisions; other judges extract by themselves"
            )

    @property
    def is_here(self) -> bool:
        """Whether it runs in this process: nothing is sent, and there is no price."""
        return self.kind in _HERE

    @property
    def chosen_model(self) -> str:
        """The model asked for, or the one that a kind of judge stands for by itself."""
        return self.model or _MODELS.get(self.kind, "")

    @property
    def name(self) -> str:
        """As `judge_from` takes it."""
        return f"{self.kind}:{self.chosen_model}" if self.chosen_model else self.kind

    def build(self) -> Judge:
        """The judge, ready to be asked."""
        if self.is_here:
            return judge_from(self.name)
        return self.remote(base_url=self.base_url, api_key=self._key(), concurrency=self.concurrency)

    def build_embedder(self) -> Embedder:
        """The embedder asked for, on the judge's server; the local one otherwise."""
        if self.embedder is None:
            return StaticEmbedder()
        return OpenAIEmbedder(
            self.embedder, base_url=self.base_url, api_key=self._key(), concurrency=self.concurrency
        )

    def remote(self, **options: Any) -> Judge:
        """A judge that is not local, whose classes are given these options."""
        if self.extractor:
            beside = judge_from(f"openai:{self.extractor}", **options)
            return judge_from(f"decisions:{self.chosen_model}", extractor=beside, **options)
        return judge_from(self.name, **options)

    def _key(self) -> str | None:
        key = os.environ.get(self.key_variable) if self.key_variable else None
        if self.key_variable and not key:
            raise ConfigurationError(
                f"--api-key-env {self.key_variable}: that variable is not set; export it first"
            )
        # A server that was named may need no key; OpenAI always does.
        if not (key or self.base_url or os.environ.get("OPENAI_API_KEY")):
            raise ConfigurationError(
                f"--judge {self.kind} needs a key: export OPENAI_API_KEY=..., "
                "or name a server that needs none with --base-url, or use --judge local"
            )
        return key


def suite_of(names: tuple[str, ...], judge: Judge) -> list[Metric]:
    """The metrics asked for, each once; the judge's default suite where none are."""
    chosen = parse_metrics(list(names), judge) if names else default_metrics(judge)
    suite = list({metric.name: metric for metric in chosen}.values())
    check_names(suite)
    return suite
