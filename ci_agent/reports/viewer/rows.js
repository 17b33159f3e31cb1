"use strict";
// The timeline: a row for each turn and each call, with its bar on the time axis of the run.

/** All rows, in the order of the run. A row knows its call or turn as `row.item`, its place as `row.place`. */
function buildRows(run, axis) {
  const rows = [];
  for (const turn of run.turns) {
    rows.push(turnRow(turn, axis, run));
    for (const call of turn.calls) rows.push(callRow(call, axis, run));
  }
  rows.forEach((row, place) => Object.assign(row, { place }));
  return rows;
}

/** Seconds since the beginning; a run that was killed ends with the last thing that is known of it. */
function timeAxis(run) {
  const ends = run.turns.flatMap((turn) => [turn.end_s, ...turn.calls.map((call) => call.start_s + call.duration_s)]);
  return Math.max(run.duration_s ?? 0, ends.reduce((a, b) => Math.max(a, b ?? 0), 0)) || 1;
}

function axisHead(total) {
  const ticks = element("div", "ticks");
  for (const part of [0, 0.5, 1]) {
    const tick = element("span", "", seconds(total * part));
    tick.style.left = `${part * 100}%`;
    ticks.append(tick);
  }
  return element("div", "axis", ticks);
}

function turnRow(turn, axis, run) {
  const row = newRow("turn", `turn-${turn.number}`, turn);
  const [status, , tool, what, took, track] = row.firstChild.children;
  status.textContent = "model";
  tool.textContent = `turn ${turn.number}`;
  what.textContent = turn.summary;
  took.textContent = seconds(turn.end_s === null ? null : turn.end_s - turn.start_s);
  drawBar(track, "model", turn.start_s, turn.end_s - turn.start_s, axis);
  row.addEventListener("toggle", () => fill(row, turnDetails, run), { once: true });
  return row;
}

function callRow(call, axis, run) {
  const row = newRow("call", `call-${call.seq}`, call);
  const [status, number, tool, what, took, track] = row.firstChild.children;
  status.className = `status ${call.status}`;
  status.textContent = call.status;
  number.textContent = `#${call.seq}`;
  tool.append(...plain(call.tool));
  what.textContent = call.summary;
  took.textContent = seconds(call.duration_s);
  drawBar(track, call.status, call.start_s, call.duration_s, axis);
  row.addEventListener("toggle", () => fill(row, callDetails, run), { once: true });
  return row;
}

const CELLS = ["", "number", "cut mono", "cut what mono", "number", "track"];
const EMPTY_ROW = element("details", "row", element("summary", "", ...CELLS.map((name) => element("span", name))));

/** A copy of the empty row: building thousands from nothing takes twice as long. */
function newRow(kind, id, item) {
  const row = EMPTY_ROW.cloneNode(true);
  row.classList.add(kind);
  row.id = id;
  row.item = item;
  return row;
}

/** What is inside is made when it is first looked at: five thousand calls would be much to make in advance. */
async function fill(row, make, run) {
  const inside = element("div", "inside");
  row.append(inside);
  inside.append(...make(row.item, await detailsAt(row.place, run.blocks)));
  row.dispatchEvent(new Event("filled"));
}

function drawBar(track, kind, start, duration, axis) {
  if (start === null || duration === null) return;
  const bar = element("span", `bar ${kind}`);
  bar.style.left = `${Math.min((start / axis) * 100, 99.7)}%`;
  bar.style.width = `${Math.min(duration / axis, 1 - start / axis) * 100}%`;
  track.append(bar);
}

function seconds(amount) {
  if (amount === null || Number.isNaN(amount)) return "";
  if (amount < 10) return `${amount.toFixed(2)} s`;
  if (amount < 120) return `${amount.toFixed(1)} s`;
  return `${Math.floor(amount / 60)} min ${Math.floor(amount % 60)} s`;
}
