"""Commands that make, review and compare golden sets."""

from steelyard.cli.commands.golden._diff import diff
from steelyard.cli.commands.golden._make import make
from steelyard.cli.commands.golden._mine import mine
from steelyard.cli.commands.golden._review import review

__all__ = ["diff", "make", "mine", "review"]
