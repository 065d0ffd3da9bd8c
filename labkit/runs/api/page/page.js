// The page: sign in, ask, and open a run, which then stands in the address.

import { showMemories } from "./memories.js";
import { Run } from "./run.js";
import { mark, showRuns } from "./runs.js";
import { act, connection, find, forget, keep, on, PAUSE, reader, send, typing, usual }
  from "./talk.js";

const ENDED = "Your session has ended. What you typed is still here: sign in and go on.";
const LOOK = 4000; // milliseconds until my runs are read again, while the page is seen

let run = null; // the open one
let signedIn = false;
let later = null; // a timer: something is read again then

// --- what is there

const begin = reader(async () => {
  try {
    const { user } = await send("GET", "user"); // another one may have signed in, in another tab
    if (isAnother(user)) return startAnew(user);
    sessionStorage.setItem("user", user);
    find("#who").textContent = `Signed in as ${user}`;
    await Promise.all([showModels(), showRuns(), showMemories()]);
  } catch (error) {
    return failed(error);
  }
  connection("");
  signedIn = true;
  find("#sign-in").hidden = true;
  find("main").hidden = find("#sign-out").hidden = false;
  if (run === null) open();
  else run.look();
  next(lookAgain, LOOK);
});

// My runs alone, since any of them may have begun to wait, and another tab may have asked.
async function lookAgain() {
  try {
    await showRuns();
  } catch (error) {
    return failed(error);
  }
  next(lookAgain, LOOK);
}

function next(read, pause) {
  clearTimeout(later);
  if (!document.hidden) later = setTimeout(read, pause);
}

function failed(error) {
  if (error.status === 401) return; // it goes on after the sign-in
  connection(error.message);
  next(begin, PAUSE);
}

async function showModels() {
  const { names, default: first } = await send("GET", "models");
  const ordered = [first, ...names.filter((name) => name !== first)];
  find("#models").replaceChildren(...ordered.map((name) => new Option(name)));
  find("#known").textContent = `Models: ${ordered.join(", ")}.`;
  find("#model").value ||= first;
}

// --- sign in and out

document.addEventListener("signed-out", () => {
  run?.leave();
  clearTimeout(later);
  connection("");
  find("#sure").close();
  document.title = "Discussions";
  find("main").hidden = find("#sign-out").hidden = true; // whoever comes next sees nothing of it
  find("#sign-in").hidden = false;
  if (signedIn) find("#why").textContent = ENDED;
  find("#token").focus();
});

on(find("#sign-in"), async (form) => {
  const token = find("#token");
  const known = await act(form, "POST", "sign-in", { token: token.value });
  if (known === undefined) return token.focus();
  token.value = "";
  await begin();
  (find("#place .words") ?? find("#question")).focus();
});

on(find("#sign-out"), async (form) => {
  if ((await act(form, "POST", "sign-out", {})) !== undefined) startAnew();
});

function isAnother(user) {
  const before = sessionStorage.getItem("user");
  return before ? before !== user : signedIn;
}

// Forgets what was typed, opened and shown: it was somebody else's.
function startAnew(user) {
  find("#ask").reset();
  sessionStorage.clear();
  if (user) sessionStorage.setItem("user", user);
  history.replaceState(null, "", location.pathname);
  location.reload();
}

// --- ask, and open a run

on(find("#ask"), async (form) => {
  const question = find("#question");
  const [rounds, model] = [Number(find("#rounds").value), find("#model").value];
  const body = { question: question.value, rounds, model };
  const made = await act(form, "POST", "runs", { ...body, id: idOf(body) });
  if (made === undefined) return;
  forget("sent");
  forget("model");
  find("#model").value = usual(); // a model that fails does not do so for the next question as well
  if (question.value === body.question) {
    question.value = "";
    forget("question");
    document.activeElement.blur();
  }
  location.hash = encodeURIComponent(made.id);
});

// The same question, sent again after an answer that was lost, has the same id: it is one run.
function idOf(body) {
  const content = JSON.stringify(body);
  const sent = JSON.parse(sessionStorage.getItem("sent"));
  if (sent?.content === content) return sent.id;
  const bytes = [...crypto.getRandomValues(new Uint8Array(16))];
  const id = bytes.map((byte) => byte.toString(16).padStart(2, "0")).join("");
  sessionStorage.setItem("sent", JSON.stringify({ content, id }));
  return id;
}

function open() {
  const id = named();
  run?.close();
  run = null;
  mark(id);
  find("#place").replaceChildren();
  document.title = "Discussions";
  if (!id) return;
  run = new Run(id, find("#place"), changed);
  return run.look();
}

function named() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return location.hash.slice(1);
  }
}

function changed(status) {
  showRuns().catch(failed);
  if (status === "completed") showMemories().catch(failed);
}

window.addEventListener("hashchange", async () => {
  await open();
  if (!typing()) find("#place .words")?.focus();
});

// --- the start

document.addEventListener("keydown", (event) => {
  const sends = event.key === "Enter" && (event.ctrlKey || event.metaKey);
  if (sends && event.target.matches("textarea")) event.target.form.requestSubmit();
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    run?.leave(); // a browser has few connections for one service
    clearTimeout(later);
  } else if (signedIn) begin();
});

// Where there is one column, an open run and what it asks come first.
const narrow = matchMedia("(max-width: 56rem)");
function arrange() {
  find(".here").insertBefore(find(narrow.matches ? "#place" : "#ask"), find(".here").firstChild);
}
narrow.addEventListener("change", arrange);
arrange();
keep(find("#question"), "question");
keep(find("#rounds"), "rounds");
keep(find("#model"), "model");
begin();
