"use strict";
// Text of models and tools as nodes. Nothing here ever becomes HTML: text is set as text, and what would control a
// terminal or reorder a line is shown instead of obeyed; colours alone are obeyed.

const SHOWN_AT_FIRST = 100_000;

/** An element; children are nodes or text, and null is left out. */
function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
}

function button(text, act) {
  const made = element("button", "", text);
  made.type = "button";
  made.addEventListener("click", act);
  return made;
}

/** A block of text, of which a very long one is shown in part until asked for. */
function textBlock(text, render = coloured) {
  const block = element("pre", "", render(text.slice(0, SHOWN_AT_FIRST)));
  block.tabIndex = 0; // it scrolls, so a keyboard must reach it
  if (text.length > SHOWN_AT_FIRST) {
    const rest = (text.length - SHOWN_AT_FIRST).toLocaleString("en");
    block.append(button(`Show ${rest} more characters`, () => block.replaceChildren(render(text))));
  }
  return block;
}

const SEQUENCE = /\x1b(?:\[([0-?]*)[ -/]*([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])/g;
// Controls, and what hides or reorders text: bidi, zero width (but the joiner between emoji), tags, lone surrogates.
const INVISIBLE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|\udb40[\udc00-\udfff]/g;

/** The text with its SGR colours. */
function coloured(text) {
  const made = document.createDocumentFragment();
  let style = {};
  let from = 0;
  for (const found of text.matchAll(SEQUENCE)) {
    made.append(...styled(text.slice(from, found.index), style));
    if (found[2] === "m") style = nextStyle(style, found[1]);
    else made.append(element("span", "escape", visible(found[0])));
    from = found.index + found[0].length;
  }
  made.append(...styled(text.slice(from), style));
  return made;
}

function styled(text, style) {
  if (!text) return [];
  const nodes = plain(text.replaceAll("\r\n", "\n"));
  const names = [...(style.marks ?? []).map((mark) => `s${mark}`), classOf("f", style.front), classOf("b", style.back)];
  const className = names.filter(Boolean).join(" ");
  const rgb = [style.front, style.back].some(Array.isArray);
  if (!className && !rgb) return nodes;
  const span = element("span", className, ...nodes);
  if (Array.isArray(style.front)) span.style.color = `rgb(${style.front.join(",")})`;
  if (Array.isArray(style.back)) span.style.backgroundColor = `rgb(${style.back.join(",")})`;
  return [span];
}

function classOf(letter, colour) {
  return typeof colour === "number" ? letter + (colour % 8) : "";
}

const HARMLESS = /^[\x20-\x7e\n\t]*$/;

/** Text nodes, and between them what is invisible, spelled out. */
function plain(text) {
  if (HARMLESS.test(text)) return text ? [text] : [];
  const nodes = [];
  let from = 0;
  for (const found of text.matchAll(INVISIBLE)) {
    if (found.index > from) nodes.push(text.slice(from, found.index));
    nodes.push(element("span", "escape", visible(found[0])));
    from = found.index + found[0].length;
  }
  if (from < text.length) nodes.push(text.slice(from));
  return nodes;
}

function visible(text) {
  return Array.from(text, (char) => {
    const code = char.codePointAt(0);
    if (code < 0x20) return `\\x${code.toString(16).padStart(2, "0")}`;
    return code < 0x7f ? char : `‹U+${code.toString(16).toUpperCase().padStart(4, "0")}›`;
  }).join("");
}

/** The style after one SGR sequence, such as `1;31` or `38;5;208`. */
function nextStyle(before, parameters) {
  const numbers = (parameters || "0").split(/[;:]/).map(Number);
  let style = { ...before };
  for (let at = 0; at < numbers.length; at += 1) {
    const number = numbers[at];
    if (number === 0) style = {};
    else if (number < 10) style.marks = [...(style.marks ?? []), number];
    else if (number < 30) style.marks = (style.marks ?? []).filter((mark) => !ends(number, mark));
    else if (number === 38 || number === 48) {
      const [colour, used] = extendedColour(numbers.slice(at + 1));
      style[number === 38 ? "front" : "back"] = colour;
      at += used;
    } else if (number === 39) style.front = undefined;
    else if (number === 49) style.back = undefined;
    else if (number < 38 || (number >= 90 && number < 98)) style.front = number % 10;
    else if (number < 48 || (number >= 100 && number < 108)) style.back = number % 10;
  }
  return style;
}

/** Whether an SGR number from 22 to 29 ends a mark: 22 ends bold and faint alike. */
function ends(number, mark) {
  return number === 22 ? mark === 1 || mark === 2 : mark === number - 20;
}

/** The colour of `5;N` or `2;R;G;B`, and how many numbers it took. */
function extendedColour(numbers) {
  if (numbers[0] === 2) return [numbers.slice(1, 4).map((each) => each & 255), 4];
  if (numbers[0] !== 5) return [undefined, numbers.length];
  const index = numbers[1] & 255;
  if (index < 16) return [index % 8, 2];
  if (index > 231) return [Array(3).fill(8 + (index - 232) * 10), 2];
  const level = (step) => (step ? 55 + 40 * step : 0);
  const cube = index - 16;
  return [[level(Math.floor(cube / 36)), level(Math.floor(cube / 6) % 6), level(cube % 6)], 2];
}

/** A unified diff, a line a block. */
function diffLines(text) {
  const made = document.createDocumentFragment();
  for (const line of text.split("\n")) {
    const kind = line.startsWith("@@") ? "place" : { "+": "add", "-": "drop" }[line[0]] ?? "";
    made.append(element("span", `diff ${kind}`, ...(line ? plain(line) : [" "])));
  }
  return made;
}
