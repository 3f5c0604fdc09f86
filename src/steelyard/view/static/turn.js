"use strict";
// The page of a turn: a claim in focus is lit with its evidence, and one row of buttons labels what is in focus.
(() => {
  const meta = (name) => document.querySelector(`meta[name="${name}"]`).content;
  const turn = document.querySelector(".turn-page");
  const bar = document.querySelector(".labelbar");
  const claims = [...turn.querySelectorAll(".claim")];
  const marks = [...turn.querySelectorAll("mark[data-claims]")];
  const byId = (id) => document.getElementById(id);
  const who = byId("who"), note = byId("note"), said = byId("label-state");
  let focus = null;

  const of = (mark) => mark.dataset.claims.split(" ");
  const light = (index) => {
    for (const mark of marks) mark.classList.toggle("lit", index !== null && of(mark).includes(index));
  };

  function focusOn(index, { scroll = "" } = {}) {
    focus = claims.some((one) => one.dataset.index === index) ? index : null;
    for (const one of claims) one.setAttribute("aria-pressed", String(one.dataset.index === focus));
    for (const mark of marks) mark.setAttribute("aria-pressed", String(focus !== null && of(mark).includes(focus)));
    light(focus);
    const lit = marks.filter((mark) => mark.classList.contains("lit"));
    const place = lit.find((mark) => mark.closest(scroll || "none"));
    place?.scrollIntoView({ block: "nearest" });
    const address = new URL(location);
    if (focus === null) address.searchParams.delete("claim");
    else address.searchParams.set("claim", focus);
    history.replaceState(null, "", address);
    if (bar) offer();
  }

  // One row of buttons, whose words go with what is in focus.
  function offer() {
    const claim = claims.find((one) => one.dataset.index === focus);
    const words = claim ? [claim.dataset.for, claim.dataset.against] : ["Good answer", "Bad answer"];
    byId("subject").textContent = claim ? `“${claim.firstElementChild.textContent}”` : "This answer";
    for (const [number, name] of ["for", "against"].entries()) {
      const button = bar.querySelector(`[data-value=${name}]`), key = document.createElement("kbd");
      key.textContent = (claim ? "sn" : "gb")[number];
      button.replaceChildren(words[number][0].toUpperCase() + words[number].slice(1), " ", key);
    }
    bar.querySelector("[data-whole]").hidden = !claim;
    bar.querySelector(".buttons").classList.remove("waiting");  // unseen until its words stand, so that nothing moves
  }

  function show(labels) {
    for (const place of turn.querySelectorAll("[data-labels]")) {
      const index = place.dataset.labels;
      const mine = labels.filter((label) => index === "turn"
        ? label.claim === null
        : label.metric === turn.dataset.metric && label.claim === Number(index));
      place.replaceChildren(...mine.map((label) => {
        const item = document.createElement("li"), value = document.createElement("b");
        item.dir = "auto";
        value.textContent = label.value.replaceAll("_", " ");
        item.append(value, ` by ${label.who}${label.note ? `: ${label.note}` : ""}`);
        return item;
      }));
    }
  }

  function tell(what) { said.textContent = what; said.classList.add("told"); }

  async function mark(value, index) {
    if (!who.value.trim()) { tell("Give your name first."); return who.focus(); }
    try { localStorage.setItem("steelyard-who", who.value); } catch { /* a private window keeps nothing */ }
    const body = {
      record_id: turn.dataset.record, value, who: who.value, note: note.value,
      metric: index === null ? null : turn.dataset.metric, claim: index === null ? null : Number(index),
    };
    try {
      const reply = await fetch(`${meta("root")}/api/labels`, {
        method: "POST", headers: { "x-csrf-token": meta("csrf"), "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      if (!reply.ok) return tell(`Not stored: ${await reply.text()}`);
      show((await reply.json()).labels);
      note.value = "";
      tell(value === "none" ? "Taken back." : "Stored.");
    } catch { tell("Not stored: the server does not answer."); }
  }

  const VALUES = { for: ["good", "supported"], against: ["bad", "not_supported"], none: ["none", "none"] };

  turn.addEventListener("click", (event) => {
    const claim = event.target.closest(".claim"), mark = event.target.closest("mark[data-claims]");
    if (claim) focusOn(claim.dataset.index === focus ? null : claim.dataset.index, { scroll: ".given" });
    else if (mark) {
      // Of several claims on one piece, the next one each time.
      const here = of(mark), next = here[(here.indexOf(focus) + 1) % here.length];
      focusOn(next === focus ? null : next, { scroll: mark.closest(".given") ? ".answer" : ".given" });
    }
  });
  for (const [enter, leave] of [["pointerover", "pointerout"], ["focusin", "focusout"]]) {
    turn.addEventListener(enter, (event) => {
      const mark = event.target.closest("mark[data-claims]"), claim = event.target.closest(".claim");
      if (mark || claim) light(claim ? claim.dataset.index : of(mark).includes(focus) ? focus : of(mark)[0]);
    });
    turn.addEventListener(leave, () => light(focus));
  }
  bar?.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.value) mark(VALUES[button.dataset.value][focus === null ? 0 : 1], focus);
    else focusOn(null);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
    const piece = event.target.closest("mark[data-claims]");
    if (piece && (event.key === "Enter" || event.key === " ")) { event.preventDefault(); return piece.click(); }
    if (event.key === "Escape") return focusOn(null);
    const link = document.querySelector(`.steps [data-go="${CSS.escape(event.key)}"]`);
    if (link) return link.click();
    if (!bar) return;
    const own = event.target.closest(".claim")?.dataset.index ?? focus;
    const value = { s: "supported", n: "not_supported" }[event.key];
    const whole = { g: "good", b: "bad" }[event.key];
    // A key is no part of the name that is asked for.
    if (value || whole || event.key === "x") event.preventDefault();
    if (value && own !== null) mark(value, own);
    else if (whole) mark(whole, null);
    else if (event.key === "x") mark("none", own);
  });
  if (who) try { who.value = localStorage.getItem("steelyard-who") ?? ""; } catch { /* as above */ }
  focusOn(turn.dataset.focus || null);
})();
