"""The judge that a command line names. A remote one is named or it is not used, whatever keys lie around."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steelyard._internal.text import counted
from steelyard.cli._options import BASE_URL, JUDGE, KEY_VARIABLE
from steelyard.engine import check_names
from steelyard.errors import ConfigurationError, MissingDependency
from steelyard.judge import HERE, OpenAIEmbedder, StaticEmbedder, judge_from, kind_of
from steelyard.judge.dry_run import DryRunJudge
from steelyard.metrics import Metric, default_metrics, parse_metrics
from steelyard.questions import Embedder, Judge
from steelyard.scores import Usage

FREE = "This judge asks nobody: no requests, no tokens, no price."
_MODELS = {"openai": "gpt-4o-mini", "decisions": "gpt-6-luna"}


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeOptions:
    """The options by which a command is told its judge."""

    judge: str = JUDGE
    base_url: str = BASE_URL
    api_key_env: str = KEY_VARIABLE

    def choice(self, **more: Any) -> JudgeChoice:
        return JudgeChoice.named(self.judge, base_url=self.base_url, key_variable=self.api_key_env, **more)


@dataclass(frozen=True, kw_only=True, slots=True)
class JudgeChoice:
    """A judge as it was typed; what is empty was not given."""

    kind: str
    """`local`, `pair`, `openai` or `decisions`."""
    model: str = ""
    """Its model, or the one that its kind stands for by itself; for `pair` the model's file."""
    extractor: str = ""
    embedder: str = ""
    base_url: str = ""
    key_variable: str = ""
    concurrency: int = 16

    @classmethod
    def named(cls, judge: str, **options: Any) -> JudgeChoice:
        """The judge that `--judge` and the options beside it name."""
        kind, model = kind_of(judge)
        chosen = cls(kind=kind, model=model or _MODELS.get(kind, ""), **options)
        if chosen.is_here and (chosen.embedder or chosen.base_url or chosen.key_variable):
            raise ConfigurationError(
                "--embedder, --base-url and --api-key-env need --judge openai:MODEL or decisions:MODEL"
            )
        if (kind == "local" and model) or (kind == "pair" and not model):
            raise ConfigurationError(
                f"--judge {judge}: write `local` alone, or `pair:FILE` with an ONNX model"
            )
        if chosen.extractor and kind != "decisions":
            raise ConfigurationError(
                "--extractor needs --judge decisions; other judges extract by themselves"
            )
        return chosen

    @property
    def is_here(self) -> bool:
        """Whether it runs in this process: nothing is sent, and there is no price."""
        return self.kind in HERE

    def check_agreed(self, yes: bool) -> None:
        """Refuse to ask a judge that costs something if the user has only seen the price."""
        if not (yes or self.is_here):
            raise ConfigurationError("nothing was sent; add --yes to go on at that price")

    @property
    def name(self) -> str:
        """As `judge_from` takes it."""
        return f"{self.kind}:{self.model}" if self.model else self.kind

    def build(self) -> Judge:
        return judge_from(self.name) if self.is_here else self._remote(**self.connection())

    def build_embedder(self) -> Embedder:
        """The embedder asked for, on the judge's server; the local one otherwise."""
        return OpenAIEmbedder(self.embedder, **self.connection()) if self.embedder else StaticEmbedder()

    def dry_run(self) -> DryRunJudge:
        """The same judge, whose requests never leave."""
        return DryRunJudge(self._remote)

    def _remote(self, **options: Any) -> Judge:
        if self.extractor:
            options["extractor"] = judge_from(f"openai:{self.extractor}", **options)
        return judge_from(self.name, **options)

    def connection(self) -> dict[str, Any]:
        """How its server is asked: address, key, requests in flight."""
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
        return {"base_url": self.base_url or None, "api_key": key, "concurrency": self.concurrency}


@dataclass(frozen=True, kw_only=True, slots=True)
class CostEstimate:
    """What requests that were made in a dry run, or will be made, take and cost."""

    usage: Usage
    dollars: float | None
    sources: Sequence[str]
    """Where the prices come from, or why there is none."""

    @classmethod
    def of(cls, judge: DryRunJudge, choice: JudgeChoice) -> CostEstimate:
        """What a dry run has counted."""
        prices = [price_of(spent, model, choice) for model, spent in judge.usage.items()]
        known = [dollars for dollars, _ in prices if dollars is not None]
        return cls(
            usage=sum(judge.usage.values(), Usage()),
            dollars=sum(known) if len(known) == len(prices) else None,
            sources=list(dict.fromkeys(source for _, source in prices)),
        )

    def words(self, scale: float = 1.0) -> str:
        """Requests, tokens and price of `scale` times as much."""
        dollars = None if self.dollars is None else self.dollars * scale
        price = "price unknown" if dollars is None else f"about ${dollars:,.{4 if dollars < 1 else 2}f}"
        used = self.usage
        requests = used.requests * scale
        tokens_in, tokens_out = used.prompt_tokens * scale, used.completion_tokens * scale
        asked = f"{requests:,.1f} requests" if scale < 1 else counted(round(requests), "request")
        return f"{asked}, {tokens_in:,.0f} tokens in, {tokens_out:,.0f} tokens out, {price}"


def price_of(usage: Usage, model: str, choice: JudgeChoice) -> tuple[float | None, str]:
    """The price in dollars, None where none is known, and its source or why there is none."""
    from steelyard.online import Price

    try:
        return Price.listed(usage, model=model, base_url=choice.base_url or None)
    except MissingDependency:
        return None, "no prices: pip install 'steelyard[prices]'"
    except ConfigurationError as error:
        return None, str(error).partition(";")[0]


def price_words(choice: JudgeChoice, usage: Usage) -> str:
    """What a judge's tokens cost; empty for a judge that costs nothing."""
    if choice.is_here or not usage.prompt_tokens:
        return ""
    dollars, source = price_of(usage, choice.model, choice)
    return source if dollars is None else f"about ${dollars:.4f} ({source})"


def suite_of(names: tuple[str, ...], judge: Judge) -> list[Metric]:
    """The metrics asked for, each once; the judge's default suite where none are."""
    chosen = parse_metrics(list(names), judge) if names else default_metrics(judge)
    suite = list({metric.name: metric for metric in chosen}.values())
    check_names(suite)
    return suite
