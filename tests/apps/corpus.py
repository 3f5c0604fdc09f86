"""All applications of the corpus, by framework: only what is asked for is imported."""

from __future__ import annotations

from importlib import import_module

from apps.app import REGISTRY, App, Framework

FAMILIES: dict[Framework, tuple[str, ...]] = {
    "langchain": (
        "langchain.prompts",
        "langchain.queries",
        "langchain.retrievers",
        "langchain.answers",
        "langchain.agents",
        "langchain.tools",
        "langchain.separate",
        "langchain.conversations",
        "langgraph.graphs",
        "langgraph.graded",
        "langgraph.states",
        "langgraph.ways",
    ),
    "llamaindex": ("llamaindex.engines", "llamaindex.separate", "llamaindex.chats"),
}
"""The files that hold applications."""


def apps_of(*frameworks: Framework) -> tuple[App, ...]:
    """The applications of some frameworks, in the order of their files."""
    for framework in frameworks:
        for family in FAMILIES[framework]:
            import_module(f"apps.{family}")
    return tuple(app for app in REGISTRY if app.framework in frameworks)
