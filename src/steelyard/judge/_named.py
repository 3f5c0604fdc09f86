"""Judges by name, for configuration files and command lines."""

from __future__ import annotations

from steelyard.errors import ConfigurationError
from steelyard.judge._judge import Judge

__all__ = ["judge_from"]


def judge_from(spec: Judge | str, *, base_url: str | None = None, api_key: str | None = None) -> Judge:
    """A Judge from its name; a Judge is returned as it is.

    Args:
        spec: `local`, `openai:MODEL` (any OpenAI-compatible chat endpoint) or `decisions:MODEL`.
        base_url: Where the model is served; the vendor's own endpoint where none is given.
        api_key: The key; without one the vendor's environment variable is read for the vendor's own endpoint.

    Raises:
        ConfigurationError: If the name is none of these.
    """
    if not isinstance(spec, str):
        if not isinstance(spec, Judge):
            raise ConfigurationError(f"judge={spec!r} is no Judge: it needs name, capabilities and answer()")
        return spec
    kind, _, model = spec.partition(":")
    if kind == "local" and not model:
        from steelyard.judge.local import LocalJudge

        return LocalJudge()
    if kind == "openai" and model:
        from steelyard.judge.chat import ChatJudge

        return ChatJudge(model, base_url=base_url, api_key=api_key)
    if kind == "decisions" and model:
        from steelyard.judge.decisions import DecisionsJudge

        return DecisionsJudge(model, base_url=base_url, api_key=api_key)
    raise ConfigurationError(f"judge={spec!r} is none of 'local', 'openai:MODEL' and 'decisions:MODEL'")
