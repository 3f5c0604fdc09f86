"use strict";
// Every metric small and on one time axis, with what happened beside; dragging over one looks at that time.
(() => {
  const { metrics, deploys, labels, alarms } = JSON.parse(document.getElementById("charts").textContent);
  const plots = document.querySelector(".plots");
  if (!plots) return;
  const range = [Number(plots.dataset.since), Number(plots.dataset.until)], width = Number(plots.dataset.width);
  const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const utc = (time) => uPlot.tzDate(new Date(time * 1e3), "Etc/UTC");
  const day = (time) => new Date(time * 1e3).toISOString().slice(0, 16).replace("T", " ");
  const ticks = (_, found, __, ___, step) => found.map((at) => day(at).slice(...(step >= 86400 ? [5, 10] : [11, 16])));
  const axis = (more) => ({
    stroke: token("--soft"), grid: { stroke: token("--line"), width: 1 }, ticks: { show: false },
    font: "11px system-ui, sans-serif", ...more,
  });

  // Where all means are high, a fall of .05 must not be a hair's breadth; never less than .3 of the scale. The
  // band of an hour with three turns may go beyond it.
  const bottom = (data) =>
    Math.max(0, Math.min(Math.floor((Math.min(...data.mean, data.threshold ?? 1) - 0.05) * 10) / 10, 0.7));

  function marks(plot, change) {
    const ink = plot.ctx, { top, height, left, width: wide } = plot.bbox, pixel = devicePixelRatio;
    const place = (time) => Math.round(plot.valToPos(time, "x", true));
    const inside = (at) => at >= left && at <= left + wide;
    const line = (time, color, dash, thick) => {
      if (!inside(place(time))) return;
      ink.strokeStyle = color;
      ink.lineWidth = thick * pixel;
      ink.setLineDash(dash.map((one) => one * pixel));
      ink.beginPath();
      ink.moveTo(place(time), top);
      ink.lineTo(place(time), top + height);
      ink.stroke();
    };
    ink.save();
    for (const [time] of deploys) line(time, token("--soft"), [3, 3], 1);
    if (change) line(change.time, token(change.worse ? "--bad" : "--good"), [], 2);
    ink.fillStyle = token("--bad");
    for (const [time] of alarms) {
      const at = place(time), size = 5 * pixel;
      if (inside(at)) ink.fill(new Path2D(`M${at} ${top + size * 2}L${at - size} ${top}L${at + size} ${top}Z`));
    }
    ink.fillStyle = token("--accent");
    for (const [time, count] of labels) {
      const at = place(time + width / 2);
      if (!inside(at)) continue;
      ink.beginPath();
      ink.arc(at, top + height - 4 * pixel, Math.min(1.5 + Math.sqrt(count), 5) * pixel, 0, 7);
      ink.fill();
    }
    ink.restore();
  }

  function chosen(plot) {
    const { left, width: wide } = plot.select;
    if (wide < 6) return;
    const address = new URL(location.href);
    const text = (at) => new Date(Math.round(plot.posToVal(at, "x")) * 1e3).toISOString().slice(0, 19);
    address.searchParams.set("since", text(left));
    address.searchParams.set("until", text(left + wide));
    location.assign(address);
  }

  function draw(box) {
    const data = metrics[box.dataset.plot], few = data.times.length < 40, middle = data.times.map((at) => at + width / 2);
    const line = { stroke: token("--accent"), points: { show: false } };
    const readout = document.createElement("output");
    box.replaceChildren(readout);
    new uPlot({
      width: box.clientWidth, height: box.clientHeight, padding: [6, 16, 0, 0], tzDate: utc, legend: { show: false },
      scales: { x: { time: true, range: () => range }, y: { range: [bottom(data), 1.02] } },
      cursor: { sync: { key: "metrics" }, y: false, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
      bands: [{ series: [2, 1], fill: token("--band") }],
      axes: [axis({ values: ticks, size: 24, space: 60 }), axis({ size: 32, space: 30, incrs: [0.1, 0.2, 0.5], values: (_, found) => found.map((one) => one.toFixed(1)) })],
      series: [
        {}, { ...line, width: 0 }, { ...line, width: 0 },
        { ...line, width: 2, points: { show: few, size: few && data.times.length < 2 ? 8 : 4 } },
        { stroke: token("--soft"), dash: [4, 4], width: 1, points: { show: false }, show: data.threshold != null },
      ],
      hooks: {
        draw: [(plot) => marks(plot, data.change)],
        setSelect: [chosen],
        setCursor: [(plot) => {
          const at = plot.cursor.idx;
          readout.textContent = at == null || plot.cursor.left < 0 ? ""
            : `${day(data.times[at])}: ${data.mean[at].toFixed(2)} (${data.low[at].toFixed(2)} to ${data.high[at].toFixed(2)}), ${data.n[at]} scored`;
        }],
      },
    }, [middle, data.low, data.high, data.mean, data.times.map(() => data.threshold)], box);
  }

  const all = () => document.querySelectorAll(".plot").forEach(draw);
  let waiting, seen = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === seen) return;
    seen = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(all, 150);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", all);
  all();
})();
