"""Where a screen learns from its judge while both work: lessons, the map in force, and its file."""

from __future__ import annotations

from collections import defaultdict, deque

from steelyard._internal.logs import SafeLogger
from steelyard._internal.redact import error_words
from steelyard._internal.warn_once import WarnOnce
from steelyard.calibration import FittedScreen, Lesson, findings_of, fit_screen, made_by
from steelyard.online.config._options import MonitorOptions
from steelyard.scores import Evaluation

_FIRST = 200
_MOST = 3_200
"""Lessons that are kept of each metric, the latest; a map takes some tens of milliseconds then."""
_log = SafeLogger("steelyard.online")


class School:
    """Draws a map after 200 turns that both judges scored, and anew whenever there are twice as many.

    A map is drawn from earlier turns and serves later ones alone: a turn's own verdict is never in what its
    screen said of it.
    """

    def __init__(self, options: MonitorOptions) -> None:
        """Read the file, if there is one."""
        assert options.screen is not None and options.judge is not None
        self._path = options.screen_file
        self._screen = (options.screen.name, options.screen.prompt_version)
        self._judge = (options.judge.name, options.judge.prompt_version)
        self._lessons: defaultdict[str, deque[Lesson]] = defaultdict(lambda: deque(maxlen=_MOST))
        self._due: defaultdict[str, int] = defaultdict(lambda: _FIRST)
        self._warn = WarnOnce(_log)
        self._fitted = FittedScreen.load(self._path)
        if self._fitted is not None and (self._fitted.screen, self._fitted.judge) != (
            self._screen,
            self._judge,
        ):
            _log.warning(
                "what %s holds was learnt by %r from %r, and is not applied to %r and %r; they learn anew",
                *(self._path, self._fitted.screen[0], self._fitted.judge[0]),
                *(self._screen[0], self._judge[0]),
            )
            self._fitted = None
        for metric, known in ({} if self._fitted is None else self._fitted.maps).items():
            # Fewer turns than it was made from would make a worse one.
            self._due[metric] = max(_FIRST, min(known.turns, _MOST))

    @property
    def version(self) -> str:
        """Of the maps in force; empty of none."""
        return "" if self._fitted is None else self._fitted.version

    def apply(self, evaluation: Evaluation) -> Evaluation:
        """The turn with what the judge is expected to say of it."""
        return evaluation if self._fitted is None else self._fitted.apply(evaluation)

    def learn(self, evaluation: Evaluation) -> None:
        """Take a turn into account that both have scored."""
        seen = {score.metric: score for score in evaluation.screen if score.value is not None}
        for score in evaluation.scores:
            screen = seen.get(score.metric)
            # Another judge's verdicts, or another screen's findings, would teach something else.
            if screen is None or score.value is None:
                continue
            if (made_by(screen.provenance), made_by(score.provenance)) != (self._screen, self._judge):
                continue
            lessons = self._lessons[score.metric]
            lessons.append(
                Lesson(
                    found=findings_of(screen),
                    judged=min(max(score.value, 0.0), 1.0),
                    inclusion=score.inclusion_probability,
                    session=evaluation.user or evaluation.session,
                )
            )
            if len(lessons) >= self._due[score.metric]:
                self._due[score.metric] = min(2 * self._due[score.metric], _MOST + 1)
                self._draw(score.metric)

    def _draw(self, metric: str) -> None:
        """Draw a metric's map; one that does not help leaves none in force."""
        maps = {} if self._fitted is None else dict(self._fitted.maps)
        made = fit_screen(self._lessons[metric])
        if made is None:
            _log.info("the screen learns nothing for %s: a map leaves as much as its own value does", metric)
            if maps.pop(metric, None) is None:
                return
        else:
            maps[metric] = made
        self._fitted = FittedScreen(screen=self._screen, judge=self._judge, maps=maps)
        try:
            self._fitted.save(self._path)
        except OSError as error:
            self._warn(
                "file",
                "what the screen has learnt cannot be stored: %s; name a file that can be written",
                error_words(error),
            )
