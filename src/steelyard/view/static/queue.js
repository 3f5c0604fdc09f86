"use strict";
// The labelling queue: one drawn turn after the other, by keys.
(() => {
  const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;
  const root = meta("root");
  const byId = (id) => document.getElementById(id);
  const far = byId("so-far");

  const tellSoFar = () => fetch(far.dataset.load)
    .then(async (reply) => { if (reply.ok) far.innerHTML = await reply.text(); })
    .catch(() => { /* the queue goes on without it */ });
  tellSoFar();
  const asked = byId("asked");
  if (!asked) return;

  const who = byId("who"), note = byId("note"), said = byId("label-state"), subject = byId("subject");
  const button = (name) => document.querySelector(`[data-do=${name}]`);
  let turns = [], at = 0, labelled = 0, busy = true;
  // Keys pressed meanwhile are left out: they would label a turn that nobody has read.
  const wait = (is) => { busy = is; asked.ariaBusy = String(is); };
  const done = [];

  function tell(what) { said.textContent = what; said.classList.add("told"); }
  const name = () => who.value.trim();

  async function draw() {
    wait(true);
    try {
      const reply = await fetch(`${root}/api/queue`);
      if (!reply.ok) return empty(await reply.text());
      const found = await reply.json();
      // The address names the turn that one was at.
      const here = new URL(location).searchParams.get("id");
      turns = found.turns.sort((one, other) => (other.id === here) - (one.id === here));
      at = labelled = 0;
      byId("progress").max = Math.max(turns.length, 1);
      await next();
    } catch { tell("The server does not answer."); }
  }

  function empty(what) {
    const line = document.createElement("p");
    line.className = "empty";
    line.textContent = what;
    asked.replaceChildren(line);
    subject.textContent = "\u00a0";
    button("more").hidden = turns.length === 0;
    for (const one of ["good", "bad", "skip"]) button(one).disabled = true;
    wait(false);
  }

  // The next turn that has texts and that nobody else has labelled meanwhile.
  async function next({ again = false } = {}) {
    wait(true);
    for (; at < turns.length; at += 1) {
      const reply = await fetch(`${root}/api/queue/turn?id=${encodeURIComponent(turns[at].id)}`);
      if (!reply.ok) continue;
      const found = await reply.json();
      const others = again ? [] : found.who.filter((one) => one !== name());
      if (others.length) tell(`${others[0]} has labelled one of them meanwhile; it dropped out.`);
      if (!found.html || others.length) continue;
      asked.innerHTML = found.html;  // the server escapes every text in it
      break;
    }
    byId("progress").value = at;
    byId("place").textContent = turns.length ? `${Math.min(at + 1, turns.length)} of ${turns.length}` : "";
    button("undo").disabled = !done.length;
    if (at >= turns.length) {
      return empty(turns.length ? `Done: you labelled ${labelled}.` : "Nothing is left to draw: every turn has a label.");
    }
    for (const one of ["good", "bad", "skip"]) button(one).disabled = false;
    button("more").hidden = true;
    subject.textContent = "This answer is";
    const address = new URL(location);
    address.searchParams.set("id", turns[at].id);
    history.replaceState(null, "", address);
    window.scrollTo(0, 0);
    wait(false);
  }

  async function send(label) {
    const reply = await fetch(`${root}/api/labels`, {
      method: "POST", headers: { "x-csrf-token": meta("csrf"), "content-type": "application/json" },
      body: JSON.stringify(label),
    });
    if (!reply.ok) throw new Error(await reply.text());
    return reply.json();
  }

  async function label(value) {
    if (!name()) { tell("Give your name first."); return who.focus(); }
    try { localStorage.setItem("steelyard-who", who.value); } catch { /* a private window keeps nothing */ }
    wait(true);
    try {
      const { id, drawn } = turns[at];
      const found = await send({ record_id: id, value, who: name(), note: note.value, metric: null, claim: null, drawn });
      done.push({ at, who: name(), before: found.before });
      labelled += 1;
      note.value = "";
      at += 1;
      tell(`Stored. The judge: ${found.judge.map(([metric, score]) => `${metric} ${score.toFixed(2)}`).join(", ") || "nothing"}.`);
      tellSoFar();
      await next();
    } catch (error) { wait(false); tell(`Not stored: ${error.message}`); }
  }

  // Takes the last word back, and puts the one before it there again.
  async function undo() {
    const last = done.at(-1);
    if (!last) return;
    wait(true);
    try {
      const { id } = turns[last.at];
      const thing = { record_id: id, who: last.who, metric: null, claim: null };
      await send({ ...thing, value: "none" });
      if (last.before) await send({ ...thing, value: last.before.value, note: last.before.note, drawn: last.before.drawn });
      done.pop();
      labelled -= 1;
      at = last.at;
      tell("Taken back.");
      tellSoFar();
      await next({ again: true });
    } catch (error) { wait(false); tell(`Not taken back: ${error.message}`); }
  }

  function run(what) {
    if (busy || button(what).disabled || button(what).hidden) return;
    if (what === "undo") undo();
    else if (what === "more") { done.length = 0; draw(); }
    else if (what === "skip") { at += 1; next(); }
    else label(what);
  }

  document.addEventListener("click", (event) => {
    const pressed = event.target.closest("[data-do]");
    if (pressed) run(pressed.dataset.do);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const what = { g: "good", b: "bad", s: "skip", u: "undo", m: "more" }[event.key];
    if (!what) return;
    event.preventDefault();  // the key is no part of a name that is asked for
    run(what);
  });
  try { who.value = localStorage.getItem("steelyard-who") ?? ""; } catch { /* as above */ }
  draw();
})();
