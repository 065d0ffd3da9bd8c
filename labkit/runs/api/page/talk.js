// Talks with the service, and with whoever reads the page.
//
// Text is only ever shown as text. What goes wrong is told beside what was done, and what was typed
// stays where it is, over a reload too, until the service has taken it.

export const PAUSE = 1000; // milliseconds before another try
const CALM = 400; // milliseconds until a new button can be pressed: a finger may be on its way
const PATIENCE = 30_000; // milliseconds for an answer
export const LOST =
  "The connection is lost. Connecting again; nothing of a run is lost, and it goes on when a " +
  "service is there.";
const TYPED = "The service cannot be reached. What you typed is still here: try again.";
const UNSURE = "The service cannot be reached. This may not have been done: look, then try again.";
const TYPES = "textarea, [type=password]"; // what a person has typed stands there
const STRANGE = "That was no answer of this service. Reload the page.";

export const find = (selector, within = document) => within.querySelector(selector);
export const copyOf = (name) => find(`#${name}`).content.firstElementChild.cloneNode(true);
export const timeOf = (seconds) =>
  new Date(seconds * 1000).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });

export function say(place, words) {
  const told = find(".told", place);
  told.textContent = words;
  delete told.dataset.since;
}

// That there was no answer. It goes away with an answer to something that was sent after it.
function sayUnanswered(place, words) {
  say(place, words);
  find(".told", place).dataset.since = performance.now();
}

function answered(sent) {
  for (const told of document.querySelectorAll(".told[data-since]")) {
    if (Number(told.dataset.since) > sent) continue;
    told.textContent = "";
    delete told.dataset.since;
  }
}

// What is the same is not told anew, or it would be read out again.
export function tell(place, words) {
  if (place.textContent !== words) place.textContent = words;
}

export const connection = (words) => tell(find("#connection"), words);

// --- the states of a run

export const ENDED = ["completed", "failed", "cancelled"];
const WORDS = {
  queued: "Waiting for a worker.",
  running: "They are at work.",
  awaiting_input: "It waits for you.",
  completed: "Done.",
  failed: "Failed. What was done is kept, and it can go on.",
  cancelled: "Cancelled.",
};
const REASONS = { consensus: "Done: they agree.", rounds: "Done: the rounds are over." };

export function wordsOf(run) {
  return (run.status === "completed" && REASONS[run.end_reason]) || WORDS[run.status];
}

// --- the service

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export async function send(method, path, body, read = JSON.parse) {
  const headers = body && { "content-type": "application/json" };
  const sent = performance.now();
  let answer, text;
  try {
    const signal = AbortSignal.timeout(PATIENCE);
    answer = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal });
    text = await answer.text();
  } catch {
    throw new Refused(0, LOST);
  }
  if (answer.status === 401) document.dispatchEvent(new Event("signed-out"));
  try {
    text = answer.ok ? text && read(text) : JSON.parse(text).error.message;
    answered(sent);
    if (answer.ok) return text;
  } catch {
    text = STRANGE;
  }
  throw new Refused(answer.status, text);
}

// What a stream says that a browser has given up, which tells nobody why: there may be no place for
// it. Words, or "", and milliseconds until it may be asked for again.
export async function whyNot(path) {
  const asked = new AbortController();
  try {
    const answer = await fetch(path, { signal: asked.signal });
    if (answer.status !== 429) return ["", PAUSE]; // whatever else it is, the run says as well
    const later = Number(answer.headers.get("retry-after")) * 1000;
    return [JSON.parse(await answer.text()).error.message, Math.max(PAUSE, later)];
  } catch {
    return ["", PAUSE];
  } finally {
    asked.abort();
  }
}

// What a person does is sent once, however often it is pressed. Undefined where it went wrong.
export async function act(form, method, path, body) {
  if (form.ariaBusy === "true") return undefined;
  form.ariaBusy = "true";
  say(form, "");
  try {
    return await send(method, path, body);
  } catch (error) {
    if (error.status !== 0) say(form, error.message);
    else sayUnanswered(form, find(TYPES, form) && method !== "DELETE" ? TYPED : UNSURE);
    return undefined;
  } finally {
    form.ariaBusy = null;
  }
}

// Makes of `read` what may be asked for at any time: it is done again, and never twice at a time.
export function reader(read) {
  let wanted = false;
  let going = null;
  async function until_done() {
    try {
      while (wanted) {
        wanted = false;
        await read();
      }
    } finally {
      going = null;
    }
  }
  return () => {
    wanted = true;
    return (going ??= until_done());
  };
}

// --- the reader

// `done(form, verb)`: the verb is the value of the button that was pressed.
export function on(form, done) {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    done(form, event.submitter?.value);
  });
}

// Asks whether it is meant, and goes on after a yes alone: no slip of a finger ends something.
export function sure(what, verb) {
  const dialog = find("#sure");
  const yes = find("[value=yes]", dialog);
  find("#sure-what").textContent = what;
  yes.textContent = verb;
  calm(yes);
  dialog.showModal();
  return new Promise((go) => (yes.onclick = go));
}

// No press that was meant for what stood there before counts for this button.
export function calm(button) {
  button.disabled = true;
  setTimeout(() => (button.disabled = false), CALM);
}

// What is typed into `field` is there again after a reload, until it is forgotten.
export function keep(field, key) {
  field.value = sessionStorage.getItem(key) ?? field.value;
  field.addEventListener("input", () => {
    sessionStorage.setItem(key, field.value);
    check(field);
  });
  check(field);
}

// Says before it is sent what would be refused; a text that is too long is not cut.
function check(field) {
  const { length } = [...field.value];
  const most = Number(field.dataset.most ?? Infinity);
  let wrong = length > 0 && field.value.trim() === "" ? "Write more than blanks." : "";
  if (length > most) wrong = `At most ${most} characters; these are ${length}.`;
  field.setCustomValidity(wrong);
}

export const usual = () => find("#models option").value; // the model that is taken if none is named
export const forget = (key) => sessionStorage.removeItem(key);
export const typing = () => document.activeElement.matches("textarea, input, select");

// What is there already is changed and never made again, so that focus and typed text stay.
export function list(place, things, key, make, change) {
  const there = new Map([...place.children].map((item) => [item.dataset.key, item]));
  things.forEach((thing, number) => {
    const item = there.get(thing[key]) ?? make(thing);
    item.dataset.key = thing[key];
    there.delete(thing[key]);
    change(item, thing);
    if (place.children[number] !== item) place.insertBefore(item, place.children[number] ?? null);
  });
  for (const item of there.values()) item.remove();
}
