// What a run asks: a box for each question, and one for each tool call that needs a yes.
//
// A box is known by its id and, for a call, by the digest of its arguments: the yes that is sent
// carries the digest of what is shown. While the run goes on no box goes away, so that none slides
// under a finger that was on its way to another.

import { calm, copyOf, ENDED, find, forget, keep, on, say, tell, timeOf, typing } from "./talk.js";

const BETWEEN = "The run goes on. It asks this again if it still needs it.";
const GONE = "The run does not ask this any more.";
const ELSEWHERE = "This was answered elsewhere.";
const DECIDED = { approve: "You approved this.", reject: "You rejected this." };

// A number keeps its text where a browser can do that: 1.0 and 2 ** 64 are shown as they are.
function exact(key, value, context) {
  const known = typeof value === "number" && context?.source && JSON.rawJSON;
  return known ? JSON.rawJSON(context.source) : value;
}

// Letters that cannot be seen, look like a blank, or turn others around, are shown by their numbers.
const UNSEEN = /[^\P{C}\n]|\p{Default_Ignorable_Code_Point}|[\p{Zl}\p{Zp}\u2800]|(?! )\p{Zs}/gu;
const visible = (text) => text.replace(UNSEEN, (it) => `\\u{${it.codePointAt(0).toString(16)}}`);

// A run as the service tells it; a call that it asks for has its arguments `shown` as well.
export function runOf(text) {
  const run = JSON.parse(text);
  JSON.parse(text, exact).asks.forEach((ask, number) => {
    run.asks[number].shown = visible(JSON.stringify(ask.arguments ?? null, null, 2));
  });
  return run;
}

const keyOf = (ask) => `${ask.id} ${ask.digest ?? ""}`;
const textOf = (card) => find("textarea", card)?.value ?? "";

// `answered`: what the events say was answered, by the id of the ask. `answer(card, body)` sends
// it, and says whether it was taken.
export function showAsks(place, run, answered, answer) {
  const cards = new Map([...place.children].map((card) => [card.dataset.key, card]));
  for (const ask of run.asks) {
    const card = cards.get(keyOf(ask)) ?? opened(place, ask, run, answer);
    cards.delete(keyOf(ask));
    const { state, seq } = card.dataset; // a run that was read before the answer opens no box again
    if (state !== "decided" || run.seq > Number(seq)) become(card, "open");
    card.dataset.seq = run.seq;
    if (ask.until) tell(find(".until", card), untilOf(ask));
  }
  const ended = ENDED.includes(run.status);
  for (const card of cards.values()) {
    if (card.ariaBusy === "true") continue; // what is said here is on its way, and decides
    const { state, id, sent } = card.dataset;
    const said = answered.get(id);
    if (ended && (state === "decided" || !textOf(card))) card.remove();
    else if (state === "decided") continue;
    else if (said !== undefined && said === sent) decided(card, said); // its answer was lost
    else if (said !== undefined) become(card, "elsewhere", ELSEWHERE);
    else if (ended || (state === "waiting" && run.asks.length > 0)) become(card, "gone", GONE);
    else if (state === "open") become(card, "waiting", BETWEEN);
  }
}

function become(card, state, words = "") {
  if (card.dataset.state === state) return;
  card.dataset.state = state;
  say(card, words);
}

function decided(card, said) {
  const { typed } = card.dataset;
  become(card, "decided", typed ? `You answered: ${said}` : DECIDED[said]);
  if (typed) forget(typed);
}

const untilOf = ({ until }) => `Counts until ${timeOf(until)}; after that the tool does not run.`;

function opened(place, ask, run, answer) {
  const call = ask.kind === "approval";
  const card = copyOf(call ? "an-approval" : "a-question");
  Object.assign(card.dataset, { key: keyOf(ask), id: ask.id });
  find(".what", card).textContent = ask.question;
  place.append(card);
  if (call) showCall(card, ask);
  else askFor(card, (card.dataset.typed = `answer ${run.id} ${ask.id}`));
  on(card, async (_, verb) => {
    if (card.dataset.state !== "open") return;
    const said = (card.dataset.sent = verb || textOf(card));
    if (await answer(card, { ask: ask.id, answer: said, digest: ask.digest })) decided(card, said);
  });
  return card;
}

function showCall(card, ask) {
  find(".tool", card).textContent = ask.tool;
  find(".id", card).textContent = ask.id;
  find(".arguments", card).textContent = ask.shown;
  find(".arguments", card).ariaLabel = `Arguments of ${ask.tool}, ${ask.id}`;
  for (const button of card.querySelectorAll("button")) {
    button.setAttribute("aria-label", `${button.textContent} ${ask.tool}, ${ask.id}`);
    calm(button);
  }
}

function askFor(card, key) {
  const field = find("textarea", card);
  find("label", card).htmlFor = field.id = key.replaceAll(" ", "-");
  keep(field, key);
  if (!typing()) field.focus();
}

