"use strict";
// Charts of the pages beside the first one, drawn by uPlot from the figures in the page.
(() => {
  const plots = JSON.parse(document.getElementById("plots").textContent);
  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = (more) => ({
    stroke: token("--soft"), grid: { stroke: token("--line"), width: 1 }, ticks: { show: false },
    font: "11px system-ui, sans-serif", ...more,
  });
  const utc = (time) => uPlot.tzDate(new Date(time * 1e3), "Etc/UTC");
  const quiet = { legend: { show: false }, cursor: { show: false }, padding: [8, 16, 0, 0] };
  const line = { stroke: token("--accent"), width: 2, points: { show: false } };

  function bars(box, data) {
    const DAY = 86400, { times } = data;
    new uPlot({
      ...quiet, width: box.clientWidth, height: 180, tzDate: utc,
      scales: { x: { range: [times[0] - DAY, times.at(-1) + DAY] }, y: { range: (_, low, high) => [0, high * 1.05 || 1] } },
      axes: [
        axis({ size: 26, values: (_, ticks) => ticks.map((tick) => new Date(tick * 1e3).toISOString().slice(5, 10)), space: 60, incrs: [DAY, 2 * DAY, 7 * DAY, 30 * DAY, 90 * DAY] }),
        axis({ size: 64, values: (_, ticks) => ticks.map((tick) => data.unit + (+tick.toPrecision(3)).toLocaleString("en")) }),
      ],
      series: [{}, { ...line, width: 1, fill: token("--band"), paths: uPlot.paths.bars({ size: [0.7, 48] }) }],
    }, [times, data.values], box);
  }

  // What people call good by the judge's score: bins as points, the map as a line, the diagonal as the ideal.
  function calibration(box, data) {
    const share = (_, ticks) => ticks.map((tick) => tick.toFixed(1));
    new uPlot({
      ...quiet, width: box.clientWidth, height: 240,
      scales: { x: { time: false, range: [0, 1] }, y: { range: [0, 1] } },
      axes: [axis({ size: 26, values: share }), axis({ size: 36, values: share })],
      series: [
        {},
        { stroke: token("--soft"), dash: [4, 4], width: 1, points: { show: false } },
        { ...line, width: 1.5, spanGaps: true, show: data.map.some((one) => one !== null) },
        { stroke: token("--line"), width: 0, points: { show: false }, paths: () => null },
        { stroke: token("--line"), width: 0, points: { show: false }, paths: () => null },
        { stroke: token("--good"), width: 0, paths: () => null, points: { show: true, size: 9, fill: token("--good") } },
      ],
      hooks: { draw: [(plot) => {
        const ink = plot.ctx;
        ink.save();
        ink.strokeStyle = token("--good");
        ink.lineWidth = devicePixelRatio;
        for (const [place, low] of data.low.entries()) {
          if (low === null) continue;
          const at = plot.valToPos(data.x[place], "x", true);
          ink.beginPath();
          ink.moveTo(at, plot.valToPos(low, "y", true));
          ink.lineTo(at, plot.valToPos(data.high[place], "y", true));
          ink.stroke();
        }
        ink.restore();
      }] },
    }, [data.x, data.x, data.map, data.low, data.high, data.good], box);
  }

  // The evidence of a fall over time, and the bar at which the alarm goes off.
  function evidence(box, data) {
    new uPlot({
      ...quiet, width: box.clientWidth, height: 180, tzDate: utc,
      scales: { x: {}, y: { distr: 3, range: [0.05, Math.max(data.bar * 2, ...data.values)] } },
      axes: [
        axis({ size: 26, values: (_, ticks) => ticks.map((tick) => new Date(tick * 1e3).toISOString().slice(5, 16).replace("T", " ")), space: 110 }),
        axis({ size: 44, splits: () => [0.1, 1, 10, 100, 1000], values: (_, ticks) => ticks }),
      ],
      series: [{}, line, { stroke: token("--bad"), dash: [6, 4], width: 1.5, points: { show: false } }],
    }, [data.times, data.values, data.times.map(() => data.bar)], box);
  }

  const DRAWN = { bars, calibration, evidence };
  function draw() {
    for (const box of document.querySelectorAll("[data-plot]")) {
      const data = plots[box.dataset.plot];
      box.replaceChildren();
      if (data && (data.times ?? data.x).length) DRAWN[data.kind](box, data);
    }
  }
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let width = innerWidth, later;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(later);
    later = setTimeout(draw, 150);
  });
})();
