// What is remembered of the reader: seen, corrected, deleted.
//
// A correction that is being typed stays, whatever is read meanwhile.

import { act, copyOf, find, forget, keep, list, on, reader, say, send, sure, tell, timeOf }
  from "./talk.js";

export const showMemories = reader(async () => {
  list(find("#memories"), await send("GET", "memories"), "key", newMemory, showMemory);
});

function showMemory(item, { text }) {
  const field = find("textarea", item);
  if (field.value === item.dataset.saved) field.value = text;
  item.dataset.saved = text;
  mark(item);
}

function mark(item) {
  const changed = find("textarea", item).value !== item.dataset.saved;
  item.toggleAttribute("data-changed", changed);
  if (changed) tell(find(".saved", item), "");
}

function newMemory({ key, text, run_id, at }) {
  const item = copyOf("a-memory");
  const field = find("textarea", item);
  field.value = text;
  field.ariaLabel = `What it remembers since ${timeOf(at)}`;
  keep(field, `memory ${key}`);
  field.addEventListener("input", () => mark(item));
  find("time", item).textContent = timeOf(at);
  find("a", item).href = `#${encodeURIComponent(run_id)}`;
  on(find("form", item), (form, verb) => (verb === "delete" ? remove : correct)(form, field, key));
  return item;
}

async function correct(form, field, key) {
  const text = field.value;
  const path = `memories/${encodeURIComponent(key)}`;
  if ((await act(form, "PUT", path, { text })) === undefined) return;
  form.parentNode.dataset.saved = text;
  find(".saved", form).textContent = "Saved.";
  forget(`memory ${key}`);
  field.focus();
  again(form);
}

async function remove(form, field, key) {
  const what = "Delete this? Runs that used it keep it in their reports.";
  await sure(`${what} ${field.value}`, "Yes, delete it");
  const path = `memories/${encodeURIComponent(key)}`;
  if ((await act(form, "DELETE", path)) === undefined) return;
  forget(`memory ${key}`);
  find("#memories-title").focus();
  again(form);
}

// What was done is done: that the list cannot be read now is told beside it.
const again = (form) => showMemories().catch((error) => say(form, error.message));
