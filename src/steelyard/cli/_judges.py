"""The judge that a command line names. A remote one is named or it is not used, whatever keys lie around."""

from __future__ import annotations

import os

from steelyard.errors import ConfigurationError
from steelyard.judge import Judge, judge_from

__all__ = ["choose_judge", "model_of"]

_MODELS = {"openai": "gpt-4o-mini", "decisions": "gpt-6-luna"}


def model_of(name: str, model: str | None) -> str:
    """The model asked for, or the one that `--judge` stands for by itself."""
    return model or _MODELS[name]


def choose_judge(name: str, *, model: str | None, base_url: str | None, key_variable: str | None) -> Judge:
    """The judge for `--judge`, `--model`, `--base-url` and `--api-key-env`.

    Raises:
        ConfigurationError: If the options do not go together, or a key is needed and not set.
    """
    if name == "local":
        if model or base_url or key_variable:
            raise ConfigurationError(
                "--model, --base-url and --api-key-env need --judge openai or --judge decisions"
            )
        return judge_from("local")
    key = os.environ.get(key_variable) if key_variable else None
    if key_variable and not key:
        raise ConfigurationError(f"--api-key-env {key_variable}: that variable is not set")
    if not (key or base_url or os.environ.get("OPENAI_API_KEY")):
        raise ConfigurationError(
            f"--judge {name} needs a key: export OPENAI_API_KEY=..., "
            "or name a server that needs none with --base-url, or use --judge local"
        )
    return judge_from(f"{name}:{model_of(name, model)}", base_url=base_url, api_key=key)
