"""The online room: turns are taken from the running application, picked, queued, judged and delivered."""

from steelyard.online._allowance import Budget
from steelyard.online._defaults import default_monitor
from steelyard.online._outlet import SinkCounts
from steelyard.online._plan import SpoolSettings
from steelyard.online._price import Price
from steelyard.online._rules import Rule
from steelyard.online._sampling import place
from steelyard.online._selection import Decision, Selection
from steelyard.online._settings import Settings
from steelyard.online._settings import load as load_settings
from steelyard.online._spool import Spool, SpoolCounts
from steelyard.online._stats import Stats
from steelyard.online._suspicion import Suspicion
from steelyard.online.monitor import Monitor

__all__ = [
    "Budget",
    "Decision",
    "Monitor",
    "Price",
    "Rule",
    "Selection",
    "Settings",
    "SinkCounts",
    "Spool",
    "SpoolCounts",
    "SpoolSettings",
    "Stats",
    "Suspicion",
    "default_monitor",
    "load_settings",
    "place",
]
