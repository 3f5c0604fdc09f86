"""The demo: a real LangChain chain over a text about weighing, once as it is and once with invented facts."""
