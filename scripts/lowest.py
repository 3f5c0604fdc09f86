"""Prints the lowest version of every dependency that pyproject.toml allows, as constraints for pip.

`python scripts/lowest.py EXTRA ...`: those of the package itself and of these extras.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path


def main() -> None:
    """Read pyproject.toml and print."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))[
        "project"
    ]
    extras = project["optional-dependencies"]
    for requirement in [*project["dependencies"], *(one for extra in sys.argv[1:] for one in extras[extra])]:
        if found := re.match(r"([\w-]+)(?:\[[\w,-]+\])?>=([\w.]+)", requirement):
            print("{}=={}".format(*found.groups()))


if __name__ == "__main__":
    main()
