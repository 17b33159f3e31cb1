"use strict";
// Puts the rows in place, and lets a person choose among them.

(function main() {
  const run = JSON.parse(document.getElementById("run").textContent);
  const axis = timeAxis(run);
  const rows = buildRows(run, axis);
  const calls = rows.filter((row) => row.classList.contains("call"));
  const timeline = document.querySelector(".timeline");
  const controls = document.querySelector(".controls");
  const search = controls.querySelector("input");
  const tool = controls.querySelector(".tool");
  const filters = { status: "all", tool: "", found: null };
  let searches = 0;

  timeline.append(axisHead(axis), ...rows);
  offerStatuses();
  offerTools();
  document.querySelector(".scriptless").hidden = true;
  for (const part of [controls, timeline]) part.hidden = false;
  search.addEventListener("input", find);
  tool.addEventListener("change", () => choose({ tool: tool.value }));
  controls.querySelector(".keys").addEventListener("click", toggleKeys);
  document.querySelector(".clear").addEventListener("click", clear);
  document.addEventListener("keydown", onKey);
  window.addEventListener("hashchange", openTarget);
  choose({});
  openTarget();

  function offerStatuses() {
    const group = controls.querySelector(".statuses");
    const count = (status) => calls.filter((row) => row.item.status === status).length;
    const offered = ["denied", "error", "unknown", "cancelled", "ok"].filter((status) => count(status));
    for (const status of ["all", ...offered]) {
      const amount = (status === "all" ? calls.length : count(status)).toLocaleString("en");
      const made = button(`${status} ${amount}`, () => choose({ status }));
      made.dataset.status = status;
      group.append(made);
    }
  }

  function offerTools() {
    const names = [...new Set(calls.map((row) => row.item.tool))].sort();
    tool.append(new Option("any", ""), ...names.map((name) => new Option(name, name)));
  }

  /** Shows what satisfies all filters, and each turn that has a call among them. */
  function choose(change) {
    Object.assign(filters, change);
    const isFiltered = filters.status !== "all" || filters.tool !== "" || filters.found !== null;
    const shown = new Set(rows.filter((row) => !isFiltered || isWanted(row)));
    let turn = null;
    for (const row of rows) {
      if (row.classList.contains("turn")) turn = row;
      else if (shown.has(row)) shown.add(turn);
    }
    for (const row of rows) row.hidden = !shown.has(row);
    for (const each of controls.querySelectorAll(".statuses button")) {
      each.setAttribute("aria-pressed", String(each.dataset.status === filters.status));
    }
    const count = calls.filter((row) => !row.hidden).length;
    say(isFiltered ? `${count.toLocaleString("en")} of ${calls.length.toLocaleString("en")} calls` : "");
    document.querySelector(".nothing").hidden = rows.length === 0 || shown.size > 0;
  }

  function isWanted(row) {
    const { status, tool: name } = row.item;
    if (filters.found !== null && !filters.found.has(row.place)) return false;
    if (row.classList.contains("turn")) return filters.status === "all" && filters.tool === "";
    return (filters.status === "all" || status === filters.status) && (!filters.tool || name === filters.tool);
  }

  /** Looks through everything that was said and done; a later search ends an earlier one. */
  async function find() {
    const wanted = search.value.trim().toLowerCase();
    const number = ++searches;
    if (!wanted) {
      choose({ found: null });
      return;
    }
    say("searching …");
    const found = new Set();
    for await (const [place, details] of allDetails(run.blocks, () => number === searches)) {
      if (JSON.stringify(Object.values(details)).toLowerCase().includes(JSON.stringify(wanted).slice(1, -1))) found.add(place);
    }
    if (number === searches) choose({ found });
  }

  function say(text) {
    controls.querySelector(".count").textContent = text;
  }

  function clear() {
    search.value = "";
    tool.value = "";
    searches += 1;
    choose({ status: "all", tool: "", found: null });
  }

  function openTarget() {
    const row = document.getElementById(location.hash.slice(1));
    if (!row?.classList.contains("row")) return;
    if (row.hidden) clear();
    const show = () => row.scrollIntoView({ block: "start", behavior: "instant" });
    row.addEventListener("filled", show, { once: true }); // before that the page may be too short
    row.open = true;
    show();
    row.querySelector("summary").focus({ preventScroll: true });
  }

  function toggleKeys() {
    const keys = document.getElementById("keys");
    keys.hidden = !keys.hidden;
    controls.querySelector(".keys").setAttribute("aria-expanded", String(!keys.hidden));
  }

  function onKey(event) {
    if (event.key === "Escape") {
      clear();
      document.activeElement?.blur();
    }
    const typing = event.target.matches("input, select");
    const act = typing || event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  function step(by, isStop) {
    const stops = rows.filter((row) => !row.hidden && isStop(row));
    const here = document.activeElement?.closest?.(".row")?.place ?? (by > 0 ? -1 : rows.length);
    const beyond = stops.filter((row) => (row.place - here) * by > 0);
    beyond.at(by > 0 ? 0 : -1)?.querySelector("summary").focus();
  }

  function isProblem(row) {
    return row.classList.contains("call") && row.item.status !== "ok";
  }

  const KEYS = {
    j: () => step(1, () => true),
    k: () => step(-1, () => true),
    n: () => step(1, isProblem),
    p: () => step(-1, isProblem),
    a: () => choose({ status: "all" }),
    d: () => choose({ status: "denied" }),
    e: () => choose({ status: "error" }),
    "/": () => search.focus(),
    "?": toggleKeys,
  };
})();
