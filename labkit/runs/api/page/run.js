// Watches one run: its state, what happened, and what it asks.
//
// Each source says one thing only. The state, and what is asked now, come from the run; what has
// happened comes from its events. So an old question among them opens no box. An event that is
// newer than the run, as it was read, has the page read the run again.

import { runOf, showAsks } from "./asks.js";
import { KINDS, Teller } from "./events.js";
import { act, connection, copyOf, ENDED, find, LOST, on, PAUSE, reader, Refused, say, send, sure,
  tell, usual, whyNot, wordsOf } from "./talk.js";

const UNREAD = "This run cannot be read now. It is shown as soon as the service answers.";
const UNKNOWN = "Not found: there is no such run of yours. Choose one of your runs, or ask.";

export class Run {
  constructor(id, place, changed) {
    Object.assign(this, { id, place, changed });
    this.path = `runs/${encodeURIComponent(id)}`;
    this.look = reader(() => this.closed || this.read());
    this.seen = 0; // the number of the last event that is on the page
    this.told = null; // the run as it was read last
    this.article = null;
    this.teller = new Teller();
    this.source = null;
    this.later = null; // a timer: it is read again then
    this.closed = false;
  }

  close() {
    this.closed = true;
    this.leave();
  }

  leave() {
    clearTimeout(this.later);
    this.source?.close();
    this.source = null;
  }

  // --- the state

  async read() {
    const seen = this.seen;
    try {
      const told = await send("GET", this.path, undefined, runOf);
      if (told.seq < seen) return location.reload(); // the store is another one: begin again
      if (!this.closed) this.show(told);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (!this.closed) this.refused(error);
    }
  }

  refused(error) {
    if (error.status === 401) return; // it goes on after the sign-in
    if (error.status === 0 || error.status >= 429) return this.lost(error.message);
    this.close();
    this.place.replaceChildren();
    this.tellInstead([404, 422].includes(error.status) ? UNKNOWN : error.message);
  }

  tellInstead(text) {
    const words = find(".words", this.place) ?? document.createElement("p");
    words.className = "card words";
    words.tabIndex = -1;
    tell(words, text);
    if (!words.parentNode) this.place.append(words);
  }

  show(told) {
    const before = this.told?.status;
    this.told = told;
    if (this.article === null) this.open();
    const { article } = this;
    document.title = `${told.question} · Discussions`;
    article.dataset.state = told.status;
    tell(find(".words", article), wordsOf(told));
    find(".cancel", article).hidden = ENDED.includes(told.status);
    find(".conclusion", article).hidden = !told.result?.conclusion;
    find(".conclusion p", article).textContent = told.result?.conclusion ?? "";
    this.showFailure();
    this.showAsks();
    this.showReport();
    if (before !== told.status) this.changed(told.status);
    this.follow();
  }

  open() {
    const article = (this.article = copyOf("a-run"));
    find(".question", article).textContent = this.told.question;
    find(".known", article).textContent = find("#known").textContent;
    on(find(".cancel", article), (form) => this.cancel(form));
    on(find(".retry", article), (form) =>
      this.done(form, "retry", { model: find("input", form).value }));
    find(".report", article).addEventListener("toggle", () => this.showReport());
    const focused = this.place.contains(document.activeElement);
    this.place.replaceChildren(article);
    if (focused) find(".words", article).focus();
  }

  showAsks() {
    const answer = (card, body) => this.done(card, "input", body);
    showAsks(find(".asks", this.article), this.told, this.teller.answered, answer);
  }

  showFailure() {
    const form = find(".retry", this.article);
    form.hidden = this.told.status !== "failed";
    find("input", form).value ||= usual();
    find(".why", form).textContent = `${this.told.error_code}: ${this.told.error_message}`;
  }

  async showReport() {
    const report = find(".report", this.article);
    if (!report.open) return;
    try {
      find("pre", report).textContent = await send("GET", `${this.path}/report`, undefined, String);
      say(report, "");
    } catch (error) {
      say(report, error.message);
    }
  }

  // --- the events

  follow() {
    const over = ENDED.includes(this.told.status) && this.seen >= this.told.seq;
    if (over || this.source?.readyState === EventSource.OPEN) connection("");
    if (over || this.source || document.hidden) return;
    const path = `${this.path}/events?after=${this.seen}`;
    const source = (this.source = new EventSource(path));
    for (const kind of KINDS) source.addEventListener(kind, (event) => this.take(event));
    source.addEventListener("open", () => {
      connection("");
      this.look();
    });
    source.addEventListener("end", () => {
      this.leave();
      this.look();
    });
    source.addEventListener("error", async () => {
      if (source.readyState !== EventSource.CLOSED) return connection(LOST);
      const [why, later] = await whyNot(path); // the browser has given up
      if (this.source !== source) return;
      this.leave();
      this.lost(why || LOST, later); // the run says why, or is followed again
    });
  }

  lost(words, later = PAUSE) {
    connection(words);
    if (this.article === null) this.tellInstead(UNREAD);
    clearTimeout(this.later);
    this.later = setTimeout(this.look, later);
  }

  take(event) {
    const number = Number(event.lastEventId);
    if (number <= this.seen) return; // sent twice
    this.seen = number;
    const events = find(".events", this.article);
    events.ariaLive = number > this.told.seq ? "polite" : "off"; // what is old is not read out
    events.append(this.teller.row(event.type, JSON.parse(event.data)));
    if (number > this.told.seq) this.look();
    else if (event.type === "input_received") this.showAsks();
  }

  // --- what the reader does

  async done(form, path, body) {
    const taken = await act(form, "POST", `${this.path}/${path}`, body);
    this.look();
    if (taken) find(".words", this.article).focus(); // what was pressed is not there any more
    return taken;
  }

  async cancel(form) {
    await sure("Cancel this run? It cannot go on after that.", "Yes, cancel it");
    this.done(form, "cancel", {});
  }
}
