"use strict";
// Watches one answer. Text is only ever added at the end, as text: nothing is cleared or redrawn.
//
// Everything goes one way: load what is known by now, add what this page does not show yet, then
// follow the events from that cursor. So it is at the start, after a reload, after "Continue", and
// wherever events cannot be followed: a gap, or a cursor that the service does not know any more.

const WORDS = {
  generating: "Writing the answer.",
  recovering: "The model's stream broke. Recovering by itself.",
  done: "Done. The answer is complete.",
  stopped: "Stopped by you. What came so far stays.",
  failed: "Failed. What came so far stays, and you can continue.",
  interrupted: "Interrupted. What came so far stays, and you can continue.",
};
const LIVE = ["generating", "recovering"];
const KINDS = ["text_delta", "segment_end", "status", "tool_pending"];
const UNREACHABLE = "The service cannot be reached. Trying again.";
const PAUSE = 1000; // milliseconds before another try

const find = (id) => document.getElementById(id);
const numberOf = (cursor) => Number(cursor.slice(cursor.lastIndexOf(":") + 1));

let id = (/^#([\w-]+)$/.exec(location.hash) ?? ["", ""])[1];
let state = "idle";
let source = null;
let seen = 0; // the number of the last event that is on the page
let article = null;
let segment = null; // the text node that grows
let losses = 0; // of the connection, since it was open
let round = 0; // of two that load at a time only the later one goes on

// --- what is shown

function element(name, text, kind = "") {
  const made = document.createElement(name);
  made.textContent = text;
  made.className = kind;
  return made;
}

function openArticle(question) {
  article = element("article", "");
  article.append(element("h2", question));
  find("answers").prepend(article);
  openSegment();
}

function openSegment() {
  segment = document.createTextNode("");
  const paragraph = element("p", "", "segment");
  paragraph.append(segment);
  article.append(paragraph);
}

function closeSegment(reason) {
  if (segment.length === 0) return;
  segment.parentNode.classList.add("closed");
  const cut = reason && reason !== "tools";
  const words = cut ? "The part above was cut off. The answer begins again here:" : "It goes on here:";
  article.append(element("p", words, "note"));
  openSegment();
}

function addWhatIsMissing(segments) {
  const shown = [...article.querySelectorAll(".segment")];
  let known = shown.reduce((sum, part) => sum + part.textContent.length, 0);
  segments.forEach((text, number) => {
    if (number > 0 && known === 0) closeSegment();
    segment.appendData(text.slice(known));
    known = Math.max(0, known - text.length);
  });
}

function say(words) {
  find("state").textContent = words;
}

function enter(name) {
  state = name;
  document.querySelector("main").dataset.state = name;
  find("stop").disabled = !LIVE.includes(name);
  find("continue").disabled = !["failed", "interrupted"].includes(name);
  say(WORDS[name] ?? name);
}

function leftAs() {
  if (!LIVE.includes(state)) return WORDS[state];
  return "You asked again meanwhile. This is still written: the browser's Back brings it back.";
}

// --- what is heard

function take(event) {
  const number = numberOf(event.lastEventId);
  if (number <= seen) return; // sent twice
  if (number > seen + 1) return watch(); // one is missing: never go on over a gap
  seen = number;
  const told = JSON.parse(event.data);
  if (event.type === "text_delta") segment.appendData(told.text);
  else if (event.type === "segment_end") closeSegment(told.reason);
  else if (event.type === "status") enter(told.state);
  else if (event.type === "tool_pending") say(`Running the tool ${told.tool}.`);
  // An error's code stands in the events for programs; its status follows with words for people.
}

function leave() {
  source?.close();
  source = null;
}

async function watch() {
  leave();
  const mine = ++round;
  const view = await ask("GET", `answers/${id}`);
  if (view === null || mine !== round) return;
  if (article === null) openArticle(view.question);
  addWhatIsMissing(view.segments);
  seen = numberOf(view.cursor);
  enter(view.status || "generating");
  if (view.ended) return;
  source = new EventSource(`answers/${id}/events?after=${encodeURIComponent(view.cursor)}`);
  for (const kind of KINDS) source.addEventListener(kind, take);
  source.addEventListener("end", leave);
  source.addEventListener("open", () => {
    losses = 0;
    say(WORDS[state]);
  });
  // Two things have this name: an event that the service sends, and a lost connection.
  source.addEventListener("error", (event) => (event instanceof MessageEvent ? take(event) : lost()));
}

function lost() {
  losses += 1;
  say(losses > 1 ? UNREACHABLE : "The connection is lost. Connecting again; the answer is written on meanwhile.");
  if (source?.readyState === EventSource.CLOSED) setTimeout(watch, PAUSE); // it has given up
}

// --- what is asked

async function ask(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: { "content-type": "application/json" },
      body: body && JSON.stringify(body),
    });
    const told = await answer.json();
    if (answer.ok) return told;
    say(told.error.message);
    if (answer.status < 500) return null;
  } catch {
    say(UNREACHABLE);
  }
  if (method === "GET") setTimeout(watch, PAUSE);
  return null;
}

find("ask").addEventListener("submit", async (event) => {
  event.preventDefault();
  const begun = await ask("POST", "answers", { question: find("question").value });
  if (begun === null) return;
  leave();
  if (article !== null) article.append(element("p", leftAs(), "note"));
  id = begun.id;
  history.pushState(null, "", `#${id}`);
  article = null;
  watch();
});
for (const name of ["stop", "continue"]) {
  find(name).addEventListener("click", async () => {
    await ask("POST", `answers/${id}/${name}`);
    find("state").focus(); // the button cannot be pressed any more
    watch();
  });
}
window.addEventListener("popstate", () => location.reload());
if (id) watch();
