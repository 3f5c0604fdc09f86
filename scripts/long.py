"""Write tests/long.txt: the tests that take long, by the JUnit file of a whole run on a quiet machine.

    pytest -n 3 --dist loadfile -o junit_family=xunit1 --junitxml FILE
    python scripts/long.py FILE

A test with many parameters takes as long as all of them together.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from pathlib import Path

LONG = Path(__file__).parent.parent / "tests/long.txt"
SECONDS = 2.0


def main() -> None:
    """Write the list, and print what it leaves to `make test`."""
    [junit] = sys.argv[1:]
    seconds: defaultdict[str, float] = defaultdict(float)
    for case in ElementTree.parse(junit).iter("testcase"):
        # A class stands behind its module in the class's name: `tests.judge.chat.test_chat.TestKeys`.
        classes = [part for part in (case.get("classname") or "").split(".") if part.startswith("Test")]
        name = (case.get("name") or "").partition("[")[0]
        seconds["::".join([case.get("file") or "", *classes, name])] += float(case.get("time") or 0)
    long = sorted(name for name, total in seconds.items() if total >= SECONDS)
    LONG.write_text("\n".join([*long, ""]), encoding="utf-8")
    whole, theirs = sum(seconds.values()), sum(seconds[name] for name in long)
    print(f"{len(long)} of {len(seconds)} tests are long: {theirs:.0f} of {whole:.0f} s")


if __name__ == "__main__":
    main()
