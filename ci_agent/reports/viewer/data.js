"use strict";
// What the rows show when they are opened, in compressed blocks: a long run's page stays small, opens at once, and
// unpacks only what is looked at.

const KEPT_BLOCKS = 8;
const unpacked = new Map();

/** The details of one row, by its place in the timeline. */
async function detailsAt(place, firsts) {
  const number = firsts.findLastIndex((first) => first <= place);
  return (await readBlock(number))[place - firsts[number]];
}

/** Each row's place with its details, in order; `isWanted` is asked before each block whether to go on. */
async function* allDetails(firsts, isWanted) {
  for (const [number, first] of firsts.entries()) {
    const block = await readBlock(number);
    if (!isWanted()) return;
    for (const [at, details] of block.entries()) yield [first + at, details];
  }
}

function readBlock(number) {
  const found = unpacked.get(number) ?? unpack(document.getElementById(`block-${number}`).textContent);
  unpacked.delete(number); // and in again, as the latest
  unpacked.set(number, found);
  if (unpacked.size > KEPT_BLOCKS) unpacked.delete(unpacked.keys().next().value);
  return found;
}

async function unpack(base64) {
  const bytes = Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}
