// My runs: the newest, and as many older ones as were asked for.
//
// Those that are shown stay, whatever is read. What has ended changes no more; the others are read
// again with the newest.

import { copyOf, ENDED, find, list, on, reader, say, send, tell, timeOf, wordsOf } from "./talk.js";

const PAGE = 50; // runs in one answer

let shown = []; // as they were read last, the newest first
let more = false; // there may be older ones than those
let deeper = false; // the reader wants some of them
let current; // the id of the open run

export const showRuns = reader(async () => {
  let at = 0;
  let page = await send("GET", "runs");
  let runs = joined(shown, at, page);
  for (;;) {
    const from = at + page.length;
    at = runs.findIndex(({ status }, number) => number >= from && !ENDED.includes(status));
    if (at < 0) break;
    page = await olderThan(runs[at - 1]);
    runs = joined(runs, at, page);
  }
  if (deeper && runs.length > 0) runs = joined(runs, runs.length, await olderThan(runs.at(-1)));
  deeper = false;
  shown = runs;
  find("#older").hidden = !more;
  list(find("#runs"), runs, "id", () => copyOf("a-line"), showLine);
});

// `runs` up to `at`, then that page, then those of them that are older than the page.
function joined(runs, at, page) {
  const last = page.length < PAGE ? -1 : runs.findIndex(({ id }) => id === page.at(-1).id);
  const rest = last < 0 ? [] : runs.slice(last + 1);
  if (rest.length === 0) more = page.length >= PAGE;
  return [...runs.slice(0, at), ...page, ...rest];
}

async function olderThan({ id }) {
  try {
    return await send("GET", `runs?before=${encodeURIComponent(id)}`);
  } catch (error) {
    if (error.status !== 404) throw error;
    return []; // it is not there any more
  }
}

function showLine(line, told) {
  find("a", line).href = `#${encodeURIComponent(told.id)}`;
  find("a", line).ariaCurrent = told.id === current ? "page" : null;
  line.dataset.state = told.status;
  tell(find(".question", line), told.question);
  tell(find(".words", line), wordsOf(told));
  tell(find("time", line), timeOf(told.created));
}

// This run is the open one: it is marked at once, also while nothing can be read.
export function mark(id) {
  current = id;
  for (const line of find("#runs").children) {
    find("a", line).ariaCurrent = line.dataset.key === id ? "page" : null;
  }
}

on(find("#older"), async (form) => {
  const last = find("#runs").lastElementChild;
  deeper = true;
  say(form, "");
  try {
    await showRuns();
    find("a", last.nextElementSibling ?? last).focus();
  } catch (error) {
    say(form, error.message);
  }
});
