// The page: sign in, ask, and open a run, which then stands in the address.

import { showMemories } from "./memories.js";
import { Run, wordsOf } from "./run.js";
import { act, connection, copyOf, find, forget, keep, list, on, PAUSE, reader, send, timeOf,
  typing } from "./talk.js";

const ENDED = "Your session has ended. What you typed is still here: sign in and go on.";

let run = null; // the open one
let signedIn = false;

// --- what is there

const begin = reader(async () => {
  try {
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
});

function failed(error) {
  if (error.status === 401) return; // it goes on after the sign-in
  connection(error.message);
  setTimeout(begin, PAUSE);
}

async function showModels() {
  const { names, default: usual } = await send("GET", "models");
  find("#models").replaceChildren(...names.map((name) => new Option(name)));
  find("#model").value ||= usual;
}

const showRuns = reader(async () => {
  list(find("#runs"), await send("GET", "runs"), "id", () => copyOf("a-line"), showLine);
});

function showLine(line, told) {
  const link = find("a", line);
  link.href = `#${encodeURIComponent(told.id)}`;
  link.ariaCurrent = told.id === run?.id ? "page" : null;
  line.dataset.state = told.status;
  find(".question", line).textContent = told.question;
  find(".words", line).textContent = wordsOf(told);
  find("time", line).textContent = timeOf(told.created);
}

// --- sign in and out

document.addEventListener("signed-out", () => {
  run?.leave();
  connection("");
  find("#sign-in").hidden = false;
  if (signedIn) find("#why").textContent = ENDED;
  if (!typing()) find("#token").focus();
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
  if ((await act(form, "POST", "sign-out", {})) === undefined) return;
  sessionStorage.clear();
  history.replaceState(null, "", location.pathname);
  location.reload();
});

// --- ask, and open a run

on(find("#ask"), async (form) => {
  const question = find("#question");
  const [rounds, model] = [Number(find("#rounds").value), find("#model").value];
  const body = { question: question.value, rounds, model };
  const made = await act(form, "POST", "runs", { ...body, id: idOf(body) });
  if (made === undefined) return;
  forget("sent");
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
  if (document.hidden) run?.leave(); // a browser has few connections for one service
  else if (signedIn) begin();
});
keep(find("#question"), "question");
keep(find("#rounds"), "rounds");
keep(find("#model"), "model");
begin();
