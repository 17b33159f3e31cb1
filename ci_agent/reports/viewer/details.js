"use strict";
// What a row shows when it is opened.

function turnDetails({ number }, turn) {
  return [
    ...turn.parts.flatMap((part) => [heading(part.type === "thinking" ? "Thinking" : "Said"), textBlock(part.text)]),
    heading("Request"),
    definitions([
      ["model", turn.model],
      ["stopped", turn.stop_reason],
      ["error", turn.error_message],
      ["tokens", turn.usage],
      ["at", turn.timestamp],
    ]),
    links(`turn-${number}`),
  ];
}

function callDetails({ seq, turn, status }, call) {
  return [
    ...argumentBlocks(call),
    ...(call.decision ? decisionBlocks(call.decision) : []),
    ...resultBlocks(call, status),
    heading("Facts of the call"),
    definitions([
      ["call id", call.id],
      ["turn", String(turn)],
      ["began", call.started_at],
      ["stage", call.stage],
      ["output", `${call.output_bytes.toLocaleString("en")} bytes${call.truncated ? ", cut" : ""}`],
    ]),
    ...otherDetails(call),
    links(`call-${seq}`, call.explain),
  ];
}

/** Each argument by itself, so that a command or a file's text reads as it is and not as JSON. */
function argumentBlocks(call) {
  if (call.arguments === null) {
    return [heading("Arguments, which are no JSON object"), textBlock(call.arguments_json ?? "")];
  }
  return Object.entries(call.arguments).flatMap(([name, value]) => {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2);
    return [heading(`Argument ${name}`), textBlock(text)];
  });
}

function decisionBlocks(decision) {
  const blocks = [
    heading("Decision"),
    definitions([
      ["policy says", `${decision.effect} (${decision.code})`],
      ["rule", decision.rule_id],
      ["stands at", decision.source],
      ["reason", decision.reason],
      ["instead", decision.instead],
      ["nearest rule", decision.nearest && `${decision.nearest.rule_id} (${decision.nearest.source})`],
      ["it stops at", decision.nearest?.stopped_at],
    ]),
  ];
  if (decision.facts.length) blocks.push(factTable(decision.facts));
  return blocks;
}

function factTable(facts) {
  const table = element("table", "", element("tr", "", ...["it would", "", "granted by", "forbidden by"].map(headCell)));
  for (const fact of facts) {
    const granted = fact.granted_by ?? (fact.forbidden_by === null ? "nobody" : "");
    const cells = [fact.kind, fact.value, granted, fact.forbidden_by ?? ""];
    table.append(element("tr", "", ...cells.map((text) => element("td", "mono", ...plain(text)))));
  }
  return table;
}

function headCell(text) {
  return element("th", "", text);
}

function resultBlocks(call, status) {
  const diff = typeof call.details.diff === "string" ? call.details.diff : "";
  const shown = call.content.map((part) => (part.type === "image" ? picture(part) : textBlock(part.text)));
  return [
    ...(diff ? [heading("Changes"), textBlock(diff, diffLines)] : []),
    heading(status !== "ok" ? "Error that the model read" : "Result that the model read"),
    ...(shown.length ? shown : [element("p", "soft", "Nothing.")]),
  ];
}

function picture(part) {
  const image = element("img", "");
  image.alt = `A picture (${part.mime_type})`;
  image.src = `data:${/^image\/[a-z0-9.+-]+$/.test(part.mime_type) ? part.mime_type : "image/png"};base64,${part.data_base64}`;
  return image;
}

/** What the record holds beside: the diff and the decision have been shown. */
function otherDetails(call) {
  const { diff, ...others } = call.details;
  if (call.decision) delete others.decision;
  return Object.keys(others).length ? [heading("Details"), textBlock(JSON.stringify(others, null, 2))] : [];
}

function links(id, command) {
  const here = element("a", "", "Link to this");
  here.href = `#${id}`;
  const made = element("div", "links", here);
  if (command) made.append(button("Copy the command that explains it", () => navigator.clipboard?.writeText(command)));
  return made;
}

function heading(text) {
  return element("h3", "", ...plain(text));
}

function definitions(pairs) {
  const list = element("dl", "");
  for (const [name, value] of pairs) {
    if (value !== null && value !== undefined) list.append(element("dt", "", name), element("dd", "", ...plain(value)));
  }
  return list;
}
