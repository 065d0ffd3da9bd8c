// The events of a run in words: who, and what.

import { copyOf, find } from "./talk.js";

const WHO = {
  recall: "Memory",
  coordinator: "Coordinator",
  proposer: "Proposer",
  tool: "Tools",
  critic: "Critic",
  ask_human: "You",
  summarise: "Summary",
  remember: "Memory",
};
const SAID = { approve: "approved", reject: "rejected" };

const TOLD = {
  run_created: ({ model }) => ["You", `asked the model ${model}.`],
  run_started: ({ worker, fence, model }) =>
    ["Worker", `${worker} ${fence > 1 ? "goes on" : "begins"}, with the model ${model}.`],
  node_finished: (data) => [WHO[data.node] ?? data.node, doneIn(data)],
  awaiting_input: ({ question }) => ["Question", question],
  input_received: ({ ask, answer, digest }, tools) =>
    ["You", digest ? `${SAID[answer]} ${tools.get(ask) ?? "a tool"}, ${ask}.` : answer],
  run_completed: () => ["End", "The discussion is done."],
  run_failed: ({ error_code, error_message }) => ["Failed", `${error_code}: ${error_message}`],
  run_cancelled: () => ["You", "cancelled the run."],
};

export const KINDS = Object.keys(TOLD);

function doneIn({ text, conclusion, memories, tools = [], role, ...decision }) {
  if (decision.action) return decidedIn(decision);
  if (memories?.length > 0) return `Known so far: ${memories.join(" · ")}`;
  if (memories) return "Nothing is known so far.";
  if (role === "proposer" && tools.length > 0) return `${text}\nWants to use: ${tools.join(", ")}.`;
  return text ?? conclusion ?? "has looked for what to keep.";
}

function decidedIn({ action, target, instruction, reason }) {
  if (action === "ask_human") return `You are to be asked: ${instruction}`;
  if (action === "finish") return `It is enough: ${reason}.`;
  return `Next is the ${target}${reason ? `: ${reason}` : ""}.`;
}

const triedAgain = ({ worker, model }) =>
  ["You", `had it tried again. ${worker} goes on, with the model ${model}.`];

// Tells the events of one run, one after the other.
export class Teller {
  constructor() {
    this.tools = new Map(); // the tool that an approval is for, by the id of the ask
    this.answered = new Map(); // what was answered to an ask, by its id
    this.last = ""; // the kind of the event before
  }

  row(type, data) {
    if (type === "awaiting_input") this.asked(data);
    if (type === "input_received") this.answered.set(data.ask, data.answer);
    const again = type === "run_started" && this.last === "run_failed";
    const [who, what] = again ? triedAgain(data) : TOLD[type](data, this.tools);
    this.last = type;
    const row = copyOf("an-event");
    Object.assign(row.dataset, { type, node: data.node ?? "" });
    find(".who", row).textContent = who;
    find(".what", row).textContent = what;
    return row;
  }

  // What was answered to an ask of this name before was to another one.
  asked({ asks = [] }) {
    for (const { id, tool } of asks) {
      this.answered.delete(id);
      this.tools.set(id, tool);
    }
  }
}
