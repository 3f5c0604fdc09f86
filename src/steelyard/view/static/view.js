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

  const turn = document.querySelector(".turn-page");
  const who = document.getElementById("who"), note = document.getElementById("note");
  const said = document.getElementById("label-state");

  function show(labels) {
    for (const place of turn.querySelectorAll("ul.labels")) {
      const claim = place.closest("[data-index]");
      const mine = labels.filter((label) => claim
        ? label.metric === claim.dataset.metric && label.claim === Number(claim.dataset.index)
        : label.claim === null);
      place.replaceChildren(...mine.map((label) => {
        const item = document.createElement("li"), value = document.createElement("b");
        item.dir = "auto";
        value.textContent = label.value.replaceAll("_", " ");
        item.append(value, ` by ${label.who}, now${label.note ? `: ${label.note}` : ""}`);
        return item;
      }));
    }
  }

  async function mark(value, claim) {
    if (!who.value.trim()) { said.textContent = "Give your name first."; return who.focus(); }
    try { localStorage.setItem("steelyard-who", who.value); } catch { /* a private window keeps nothing */ }
    const body = {
      record_id: turn.dataset.record, value, who: who.value, note: note.value,
      metric: claim ? claim.dataset.metric : null, claim: claim ? Number(claim.dataset.index) : null,
    };
    try {
      const reply = await fetch(`${root}/api/labels`, {
        method: "POST", headers: { "x-csrf-token": meta("csrf"), "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      if (!reply.ok) { said.textContent = `Not stored: ${await reply.text()}`; return; }
      show((await reply.json()).labels);
      note.value = "";
      said.textContent = "Stored.";
    } catch { said.textContent = "Not stored: the server does not answer."; }
  }

  function light(button) {
    const on = button.getAttribute("aria-pressed") !== "true";
    for (const other of turn.querySelectorAll(".claim")) other.setAttribute("aria-pressed", "false");
    for (const piece of turn.querySelectorAll("mark")) {
      piece.classList.toggle("lit", on && piece.dataset.claims.split(" ").includes(button.dataset.claim));
    }
    button.setAttribute("aria-pressed", String(on));
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!turn || !button) return;
    if (button.dataset.value) mark(button.dataset.value, button.closest("[data-index]"));
    else if (button.matches(".claim")) light(button);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (rows && (event.key === "j" || event.key === "k")) move(event.key === "j" ? 1 : -1);
    const search = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (search) { event.preventDefault(); search.focus(); }
    if (!turn || !who) return;
    const claim = event.target.closest("[data-index]");
    const value = claim ? { s: "supported", n: "not_supported" }[event.key] : undefined;
    const whole = { g: "good", b: "bad" }[event.key];
    if (value || whole) event.preventDefault();  // the key is no part of a name that is asked for
    if (value) mark(value, claim);
    else if (whole) mark(whole, null);
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
  if (state) watch();
  const slices = document.getElementById("slices");
  // Looked for behind the page; the server escapes every text in it.
  if (slices) fetch(`${root}/api/slices?${slices.dataset.query}`)
    .then(async (reply) => {
      if (!reply.ok) return;
      slices.innerHTML = await reply.text();
      // What changed belongs above all figures; it says more than the sentence there.
      const changed = slices.querySelector(".changed");
      if (changed) document.querySelector(".headline")?.replaceWith(changed);
    })
    .catch(() => { /* the page is complete without it */ });
  if (rows?.dataset.live) follow(rows.dataset.live);
  if (who) try { who.value = localStorage.getItem("steelyard-who") ?? ""; } catch { /* as above */ }
})();
