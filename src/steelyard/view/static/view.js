"use strict";
(() => {
  const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;
  const root = meta("root");
  const rows = document.getElementById("rows");
  const PERIOD = 3000;
  const SHOWN = 500;

  // The server escapes every text in the rows it sends.
  function follow(key) {
    const state = document.getElementById("live-state");
    const wanted = new URLSearchParams(key);
    async function look() {
      let again = PERIOD;
      try {
        if (!document.hidden) {
          const reply = await fetch(`${root}/api/new?${wanted}`);
          if (reply.status === 401) return location.reload();
          if (!reply.ok) throw new Error(reply.status);
          const found = await reply.json();
          if (found.count) {
            const before = rows.children.length;
            rows.insertAdjacentHTML("afterbegin", found.rows);
            for (const row of [...rows.children].slice(0, rows.children.length - before)) row.classList.add("fresh");
            while (rows.children.length > SHOWN) rows.lastElementChild.remove();
            wanted.set("time", found.time);
            wanted.set("id", found.id);
            state.textContent = `${found.count} new`;
          }
        }
      } catch {
        state.textContent = "The server does not answer; new turns are not shown.";
        again = 5 * PERIOD;
      }
      setTimeout(look, again);
    }
    setTimeout(look, PERIOD);
  }

  function move(by) {
    const links = [...document.querySelectorAll("#rows a.open")];
    const now = links.indexOf(document.activeElement);
    links[Math.min(Math.max(now + by, 0), links.length - 1)]?.focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (rows && (event.key === "j" || event.key === "k")) move(event.key === "j" ? 1 : -1);
    const search = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (search) { event.preventDefault(); search.focus(); }
  });
  const state = document.getElementById("state");
  async function watch() {
    let again = PERIOD;
    try {
      if (!document.hidden) {
        const reply = await fetch(`${root}/api/state`);
        if (reply.status === 401) return location.reload();
        if (!reply.ok) throw new Error(reply.status);
        const html = await reply.text();
        // Not while somebody reads it with the keyboard: the focus would be lost.
        if (!state.contains(document.activeElement)) state.innerHTML = html;
      }
    } catch {
      again = 5 * PERIOD;
    }
    setTimeout(watch, again);
  }
  if (state) setTimeout(watch, PERIOD);
  // Looked for behind the page; the server escapes every text in it.
  const answer = document.querySelector("#answer[data-query]");
  if (answer) fetch(`${root}/api/closer?${answer.dataset.query}`)
    .then(async (reply) => {
      if (!reply.ok) return;
      // What stands below stays where it is.
      const first = document.querySelector(".first");
      first.style.minHeight = `${first.offsetHeight}px`;
      first.classList.remove("pending");
      const found = new DOMParser().parseFromString(await reply.text(), "text/html");
      for (const piece of found.querySelectorAll("[data-for]")) {
        const place = document.getElementById(piece.dataset.for);
        // Not while somebody reads it with the keyboard: the focus would be lost.
        if (!place.contains(document.activeElement)) place.replaceChildren(...piece.childNodes);
      }
    })
    .catch(() => { /* the page says all but what a closer look finds */ });
  if (rows?.dataset.live) follow(rows.dataset.live);
})();
