"""What a chat server accepts, learned from what it refuses.

OpenAI-compatible servers differ: some know no JSON schema, some models take no temperature. The first request
assumes the best; a refusal that names what it dislikes, or one that ends when something is left out, is
remembered for the judge's lifetime.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

Form = Literal["schema", "json", "plain"]
"""How the server is held to JSON: by a strict schema, by JSON mode, or by the prompt alone."""

_LOWER: dict[Form, Form] = {"schema": "json", "json": "plain"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerFeatures:
    """What to send to a server."""

    form: Form = "schema"
    """How it is held to JSON."""
    spelled: bool = False
    """Whether the prompt spells the schema out as well, for servers that take the option and ignore it."""
    temperature: bool = True
    """Whether it takes a temperature."""
    logprobs: bool = True
    """Whether it takes the wish for log probabilities."""
    counts: bool = True
    """Whether lists in the schema may say how long they are."""
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """What it calls the limit on the reply."""

    def after_refusal(self, message: str, sent: dict[str, Any]) -> ServerFeatures | None:
        """What to try after a bad request; None where nothing is left to change.

        Args:
            message: The server's words.
            sent: The options that were sent.
        """
        words = message.lower()
        if "context length" in words or "context_length" in words or "maximum context" in words:
            return None
        if "temperature" in words and "temperature" in sent:
            return replace(self, temperature=False)
        if "logprobs" in words and "logprobs" in sent:
            return replace(self, logprobs=False)
        if "max_tokens" in words and "max_tokens" in sent:
            return replace(self, limit="max_completion_tokens")
        if self.form == "schema" and self.counts and ("minitems" in words or "maxitems" in words):
            return replace(self, counts=False)
        lower = _LOWER.get(self.form)
        return replace(self, form=lower) if lower else None

    def after_nonsense(self) -> ServerFeatures:
        """What to send after a reply that held no JSON although it was asked for."""
        return replace(self, spelled=True)

    @property
    def spells(self) -> bool:
        """Whether the prompt holds the schema."""
        return self.spelled or self.form != "schema"
