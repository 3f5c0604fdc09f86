"use strict";
(() => {
  const charts = JSON.parse(document.getElementById("charts").textContent);
  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = (more) => ({
    stroke: token("--soft"), grid: { stroke: token("--line"), width: 1 }, ticks: { show: false },
    font: "11px system-ui, sans-serif", ...more,
  });
  const places = (digits) => (_, value) => (value == null ? "–" : value.toFixed(digits));
  const two = (number) => String(number).padStart(2, "0");
  const hours = (_, ticks, __, ___, step) => ticks.map((tick) => {
    const at = new Date(tick * 1e3), day = `${two(at.getUTCMonth() + 1)}-${two(at.getUTCDate())}`;
    const hour = `${two(at.getUTCHours())}:${two(at.getUTCMinutes())}`;
    return step >= 86400 || hour === "00:00" ? day : hour;
  });
  const WHOLE = [...Array(9).keys()].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power));
  const utc = (time) => uPlot.tzDate(new Date(time * 1e3), "Etc/UTC");

  // Where all means are high, a fall of .05 must not be a hair's breadth; never less than .3 of the scale.
  function bottom(data) {
    const least = Math.min(...data.low, data.threshold ?? 1) - 0.02;
    return Math.max(0, Math.min(Math.floor(least * 10) / 10, 0.7));
  }

  const changed = (change) => (plot) => {
    if (!change) return;
    const at = Math.round(plot.valToPos(change.time, "x", true)), { top, height } = plot.bbox, ink = plot.ctx;
    ink.save();
    ink.strokeStyle = token(change.worse ? "--bad" : "--good");
    ink.lineWidth = 2 * devicePixelRatio;
    ink.setLineDash([]);
    ink.beginPath();
    ink.moveTo(at, top);
    ink.lineTo(at, top + height);
    ink.stroke();
    ink.restore();
  };

  function overTime(box, data) {
    const width = box.clientWidth, sync = { key: "m" + box.dataset.chart };
    const lone = data.times.length === 1, half = box.dataset.width * 0.6;
    const points = { show: data.times.length < 40, size: lone ? 8 : 5 };
    const line = { stroke: token("--accent"), spanGaps: false };
    const scales = { x: { time: true, range: [data.times[0] - half, data.times.at(-1) + half] }, y: { range: [bottom(data), 1.02] } };
    const level = data.times.map(() => data.threshold);
    new uPlot({
      width, height: 238, padding: [8, 24, 10, 0], tzDate: utc, scales, cursor: { sync, y: false },
      hooks: { draw: [changed(data.change && { ...data.change, time: data.change.time - half / 1.2 })] },
      bands: [{ series: [2, 1], fill: token("--band") }],
      axes: [axis({ show: false }), axis({ size: 40, values: (_, ticks) => ticks.map((tick) => tick.toFixed(1)) })],
      series: [
        { label: "from (UTC)", value: "{YYYY}-{MM}-{DD} {HH}:{mm}" },
        { ...line, label: "low", width: lone ? 0 : 0.5, points: { show: lone, size: 4 }, value: places(2) },
        { ...line, label: "high", width: lone ? 0 : 0.5, points: { show: lone, size: 4 }, value: places(2) },
        { ...line, label: "mean", width: 2, points, value: places(2) },
        { label: "smoothed", stroke: token("--soft"), width: 1.5, points: { show: false }, show: data.times.length > 2, value: places(2) },
        { label: "threshold", stroke: token("--soft"), dash: [5, 5], width: 1, points: { show: false },
          show: data.threshold != null, value: places(2) },
      ],
    }, [data.times, data.low, data.high, data.mean, data.smooth, level], box);
    new uPlot({
      width, height: 116, padding: [8, 24, 0, 0], tzDate: utc, scales: { x: scales.x, y: { range: (u, low, high) => [0, Math.max(high, 1)] } },
      cursor: { sync, y: false }, legend: { show: false },
      axes: [axis({ values: hours }), axis({ size: 40, space: 18, incrs: WHOLE, values: (_, ticks) => ticks.map((t) => (t >= 1e4 ? t / 1e3 + "k" : t)) })],
      series: [{}, { label: "scored", fill: token("--band"), stroke: token("--accent"), width: 1,
        paths: uPlot.paths.bars({ size: [0.7, 60] }), points: { show: false } }],
    }, [data.times, data.n], box);
  }

  function shares(box, data) {
    const count = data.shares.length;
    new uPlot({
      width: box.clientWidth, height: 300, legend: { show: false }, cursor: { show: false },
      scales: { x: { time: false, range: [0, 1] }, y: { range: (u, low, high) => [0, Math.max(high * 1.05, 0.05)] } },
      axes: [
        axis({ values: (_, ticks) => ticks.map((tick) => tick.toFixed(1)) }),
        axis({ size: 44, values: (_, ticks) => ticks.map((tick) => +(tick * 100).toFixed(1) + " %") }),
      ],
      series: [{}, { fill: token("--band"), stroke: token("--accent"), width: 1,
        paths: uPlot.paths.bars({ size: [0.85, 60] }), points: { show: false } }],
    }, [data.shares.map((_, index) => (index + 0.5) / count), data.shares], box);
  }

  function draw() {
    for (const box of document.querySelectorAll(".chart")) {
      box.replaceChildren();
      (box.dataset.kind === "time" ? overTime : shares)(box, charts[box.dataset.chart]);
    }
  }

  function light(button) {
    const on = button.getAttribute("aria-pressed") !== "true", turn = button.closest(".turn");
    for (const other of turn.querySelectorAll(".claim")) other.setAttribute("aria-pressed", "false");
    for (const mark of turn.querySelectorAll("mark")) mark.classList.remove("lit");
    if (!on) return;
    button.setAttribute("aria-pressed", "true");
    for (const mark of turn.querySelectorAll("mark")) {
      if (!mark.dataset.claims.split(" ").includes(button.dataset.claim)) continue;
      mark.classList.add("lit");
      const text = mark.closest(".text");
      text.scrollTop = mark.offsetTop - text.offsetTop - text.clientHeight / 2;
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest(".claim");
    if (button) light(button);
  });
  let waiting, seen = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === seen) return;
    seen = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(draw, 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
})();
