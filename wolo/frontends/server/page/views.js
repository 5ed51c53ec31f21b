// Draws lines of a session as DOM nodes. Data never becomes markup.
import { add, clean, codeBlock, copyButton, diff, el, markdown } from "./markdown.js";

const MARKS = { running: "◌", done: "●", failed: "✗", denied: "⊘" };
const SAID = { running: "running", done: "done", failed: "failed", denied: "denied" };
const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const MOST_SHOWN = 16000, LONGEST_PROMPT = 1500, MOST_PROMPT_LINES = 16;

export const money = (usd) => (usd == null ? "" : usd < 0.01 ? `$${usd.toFixed(4)}` : `$${usd.toFixed(2)}`);
export const tokens = (count) => (count < 1000 ? `${count}` : count < 1e6 ? `${(count / 1000).toFixed(count < 10000 ? 1 : 0)}k` : `${(count / 1e6).toFixed(1)}M`);
const seconds = (count) => (count < 90 ? `${count.toFixed(1)} s` : `${Math.round(count / 60)} min`);

/** Plain text; the middle of a long one on demand. */
function output(text, command = "") {
  const shown = clean(command ? `$ ${command}\n${text}` : text);
  if (shown.length <= MOST_SHOWN) return el("div", { class: "code" }, el("pre", { tabindex: "0" }, shown), copyButton(() => shown, "Copy output"));
  const pre = el("pre", { tabindex: "0" }, shown.slice(0, MOST_SHOWN / 2));
  const gap = el("button", { type: "button", class: "more" }, `Show ${tokens(shown.length - MOST_SHOWN)} more characters`);
  gap.addEventListener("click", () => { pre.textContent = shown; });
  pre.append("\n", gap, "\n", shown.slice(-MOST_SHOWN / 2));
  return el("div", { class: "code" }, pre, copyButton(() => shown, "Copy output"));
}

function argument(name, input) {
  if (Array.isArray(input.items ?? input.todos)) return "";
  if (Array.isArray(input.questions)) return shorten(String(input.questions[0]?.question ?? ""), 200);
  const value = input.command ?? input.path ?? input.pattern ?? input.url ?? input.query ?? input.description ?? input.prompt ?? input.name;
  if (typeof value === "string") return shorten(value.split("\n")[0], 200);
  const text = JSON.stringify(input);
  return text === "{}" ? "" : shorten(text, 200);
}

function argumentsOf(input) {
  const is = (...names) => Object.keys(input).every((name) => names.includes(name));
  if (is("path", "old", "new") && (input.old ?? input.new) != null) return change([input], input.path);
  if (is("path", "edits") && Array.isArray(input.edits)) return change(input.edits, input.path);
  if (is("patch") && typeof input.patch === "string") return diff(input.patch);
  if (is("path", "content") && typeof input.content === "string") return diff(prefixed(`+++ ${input.path}`, input.content, "+"));
  if (is("command") && typeof input.command === "string") return output(input.command);
  const lines = Object.entries(input).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value, null, 1)}`);
  return lines.length ? output(lines.join("\n")) : null;
}

const prefixed = (head, text, sign) => [head, ...String(text).replace(/\n$/, "").split("\n").map((line) => sign + line)].join("\n");

function change(edits, path) {
  const pieces = edits.map((edit) => prefixed(prefixed("@@", edit?.old ?? "", "-"), edit?.new ?? "", "+"));
  return diff([`+++ ${path ?? ""}`, ...pieces].join("\n"));
}

const counts = (view) => [el("span", { class: "plus" }, `+${view.added}`), " ", el("span", { class: "minus" }, `−${view.removed}`)];

export class CallView {
  constructor(id, name, input) {
    this.mark = el("span", { class: "mark", role: "img", "aria-label": SAID.running }, MARKS.running);
    this.sum = el("span", { class: "sum" });
    this.body = el("div");
    const head = el("summary", {}, this.mark, el("b", {}, name), el("span", { class: "args" }, argument(name, input)), this.sum);
    this.node = el("details", { class: "call running", "data-id": id }, head, this.body);
    this.input = input;
    this.isTodo = name === "todo";
    this.output = "";
    this.isDenied = false;
  }

  progress(text) {
    this.output = (this.output + text).slice(-MOST_SHOWN);
    if (!this.live) this.body.replaceChildren(this.live = el("pre", {}));
    this.live.textContent = clean(this.output);
    this.live.scrollTop = this.live.scrollHeight;
  }

  task(line) {
    const started = line.status === "started";
    this.sum.textContent = started ? `${line.agent} works` : `${line.agent}: ${line.ended}, ${line.num_calls} calls`;
    if (started && !this.live) this.body.replaceChildren(el("div", { class: "quoted" }, clean(shorten(line.prompt, 4000))));
  }

  end(state, content, view) {
    this.node.className = `call ${state}`;
    this.mark.textContent = MARKS[state];
    this.mark.setAttribute("aria-label", SAID[state]);
    const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const text = parts.filter((part) => part.type === "text").map((part) => part.text).join("\n");
    const images = parts.filter((part) => part.type === "image" && /^image\/(png|jpeg|gif|webp)$/.test(part.source.media_type));
    this.body.replaceChildren(...this.result(text, view).filter(Boolean));
    for (const image of images) this.body.append(el("img", { src: `data:${image.source.media_type};base64,${image.source.data}`, alt: "Image that the tool returned" }));
    this.node.open = state === "failed" || images.length > 0 || (view?.type === "diff" && view.added + view.removed <= 60);
  }

  result(text, view) {
    if (view?.type === "diff") {
      this.sum.replaceChildren(...counts(view));
      return [diff(view.text)];
    }
    if (view?.type === "output") {
      this.sum.textContent = view.exit_code ? `exit ${view.exit_code}` : seconds(view.seconds);
      return [output(view.text, view.command)];
    }
    if (view?.type === "delegated") {
      const facts = [view.ended === "done" ? "" : view.ended, `${view.calls.length} call${view.calls.length === 1 ? "" : "s"}`, `${tokens(view.tokens)} tokens`, money(view.cost_usd), seconds(view.seconds)];
      this.sum.textContent = facts.filter(Boolean).join(" · ");
      return [el("ol", { class: "steps" }, ...view.calls.map((call) => el("li", {}, call))), answerNode(text.replace(/\n+\[[^\n]*\]\s*$/, ""))];
    }
    const items = view?.type === "todo_list" ? view.items : this.isTodo ? this.input.items ?? this.input.todos : null;
    if (Array.isArray(items)) {
      this.sum.textContent = `${items.filter((item) => item?.status === "completed").length} of ${items.length} done`;
      return [todoItems(items)];
    }
    if (view?.type === "listing") this.sum.textContent = `${view.total}${view.incomplete ? "+" : ""} found`;
    if (view?.type === "fetched") this.sum.textContent = `${view.status} · ${tokens(view.size_bytes)} bytes`;
    return [this.input.questions ? null : argumentsOf(this.input), text ? output(text) : null];
  }
}

export function promptNode(content) {
  const text = content.filter((part) => part.type === "text").map((part) => part.text).join("");
  const images = content.filter((part) => part.type === "image").length;
  const shown = clean(text) + (images ? `\n[${images} image${images > 1 ? "s" : ""}]` : "");
  const node = el("div", { class: "prompt" });
  const head = shown.split("\n").slice(0, MOST_PROMPT_LINES).join("\n").slice(0, LONGEST_PROMPT);
  if (head.length > shown.length - 200) node.textContent = shown;
  else {
    const more = el("button", { type: "button", class: "more" }, `Show all ${tokens(shown.length)} characters`);
    more.addEventListener("click", () => { node.textContent = shown; });
    node.append(`${head}… `, more);
  }
  return node;
}

export const answerNode = (text) => el("div", { class: "answer" }, markdown(text), copyButton(() => text, "Copy answer"));
export const noteNode = (text, level = "") => el("div", { class: `note ${["warning", "error"].includes(level) ? level : ""}` }, text);

export function thinkingNode(text, open = false) {
  return el("details", { class: "thinking", open }, el("summary", {}, open ? "Thinking…" : "Thought"), el("div", {}, text));
}

export function endNode(line) {
  const usage = line.usage ?? {};
  const sum = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0) + (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0);
  const facts = [sum ? `${tokens(sum)} tokens` : "", money(line.total_cost_usd), line.duration_ms ? seconds(line.duration_ms / 1000) : ""];
  const node = el("div", { class: "end" }, facts.filter(Boolean).join(" · "));
  const files = line.files_changed?.length;
  if (files) node.append(facts.some(Boolean) ? " · " : "", el("button", { type: "button", class: "more changes" }, files === 1 ? line.files_changed[0] : `${files} files`));
  const work = line.verification;
  if (work?.line) node.prepend(noteNode(work.line, work.status === "failed" ? "warning" : ""));
  if (line.error) node.prepend(noteNode([line.error.message, line.error.hint].filter(Boolean).join(" "), "error"));
  else if (line.subtype === "error_interrupted") node.prepend(noteNode("Interrupted.", "warning"));
  else if (line.subtype?.startsWith("error_max")) node.prepend(noteNode(`Stopped: the limit of ${line.subtype.slice(10)} is reached.`, "warning"));
  return node;
}

const DECISIONS = { once: "Yes", session: "For this session", always: "Always", no: "No", never: "Never" };
const SANDBOX = {
  inside: "Runs in the sandbox.",
  outside: "Runs outside any sandbox, with all your rights.",
  again: "It ran in the sandbox and failed; outside it has all your rights.",
  restored: "It ran in the sandbox; Yes keeps its version of these files.",
  host: "It runs in the sandbox and waits; Yes lets this command connect to the host.",
};

const FOLDED_LINES = 16, FOLDED_CHARACTERS = 1600;

/** A text that an approval is about: a long one is folded; the second value shows it whole, and says whether it was folded. */
function quoted(text, draw) {
  const lines = text.split("\n"), head = lines.slice(0, FOLDED_LINES).join("\n").slice(0, FOLDED_CHARACTERS);
  if (head.length === text.length) return [draw(text), () => false];
  const left = lines.length - head.split("\n").length, rest = left || text.length - head.length;
  const more = el("button", { type: "button", class: "more" }, `${rest} more ${left ? "line" : "character"}${rest === 1 ? "" : "s"}`);
  const node = el("div", {}, draw(head), more);
  const unfold = () => more.isConnected && (node.replaceChildren(draw(text)), true);
  more.addEventListener("click", unfold);
  return [node, unfold];
}

const plain = (text) => el("pre", { tabindex: "0" }, text);
const unfoldedDiff = (text) => {
  const node = diff(text);
  for (let more; (more = node.querySelector(".more"));) more.click();
  return node;
};

/** The change, and every argument that it does not show; and what shows all of it. */
function proposed(line) {
  const isDiff = line.view?.type === "diff";
  const left = line.arguments.filter((each) => !(isDiff && each.is_in_view));
  const [shown, unfolds] = isDiff ? quoted(line.view.text, unfoldedDiff) : [null, () => false];
  const rows = left.map((each) => [each.name, ...quoted(each.text, plain)]);
  const node = el("div", { class: "what" }, shown, ...rows.flatMap(([name, text]) => [el("h3", {}, name), text]));
  return [node, () => [unfolds, ...rows.map((row) => row[2])].map((unfold) => unfold()).some(Boolean)];
}

export function approvalNode(line, decide) {
  const reason = el("input", { type: "text", placeholder: "Reason, if no", "aria-label": "Reason for the model, if no" });
  const titles = { session: line.rule, never: `Saves a rule that denies ${line.never}` };
  const [what, unfold] = proposed(line), all = el("div", { class: "why", role: "status" });
  const choose = (decision) => {
    if (!["no", "never"].includes(decision) && unfold()) all.textContent = "Now all of it is shown. Press again to allow it.";
    else decide(decision, reason.value);
  };
  const buttons = line.decisions.map((each) =>
    el("button", { type: "button", class: each === "once" ? "main" : "", "data-decision": each, title: titles[each] ?? "", on: { click: () => choose(each) } }, DECISIONS[each] ?? each));
  const { view } = line, isDiff = view?.type === "diff";
  const title = line.name === "shell" ? "Run this command?" : isDiff ? `${view.created ? "Create" : "Change"} ${view.path}?` : `Allow ${line.name}?`;
  const warnings = [SANDBOX[line.sandbox], ...line.outside.map((path) => `Outside the workspace: ${path}`)].filter(Boolean);
  reason.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); decide("no", reason.value); } });
  return el("div", { class: "ask", role: "group", tabindex: "-1", "aria-label": title },
    el("h2", {}, title, line.agent ? ` (${line.agent})` : null, isDiff ? el("small", {}, " ", ...counts(view)) : null),
    what,
    ...warnings.map((text, at) => el("div", { class: at || line.sandbox !== "inside" ? "why warning" : "why" }, text)),
    line.reason ? el("div", { class: "why" }, line.reason) : null,
    line.rule ? el("div", { class: "why" }, `“Always” saves the rule ${line.rule}`) : null, all, el("div", { class: "row" }, ...buttons, reason));
}

const PLAN_CHOICES = { auto: "Start in auto", edit: "Start with edits approved", keep: "Keep planning", revise: "Edit the plan" };

/** A plan with its choices. Words go with "keep"; editing replaces the plan by a field with its text, which is sent with "revise". */
function planNode(question, answer) {
  const plan = el("div", { class: "text plan" }), words = el("input", { type: "text", placeholder: "What to change", "aria-label": "What to change in the plan" });
  const field = el("textarea", { rows: "12", "aria-label": "The plan", hidden: "" });
  field.value = question.text;
  add(plan, markdown(question.text));
  const choose = (choice) => {
    if (choice === "revise" && field.hidden) { field.hidden = false; plan.hidden = true; field.focus(); return; }
    answer([{ chosen: [choice], text: choice === "keep" ? words.value : choice === "revise" ? field.value : "" }]);
  };
  const buttons = question.options.map(({ label }) =>
    el("button", { type: "button", "data-choice": label, on: { click: () => choose(label) } }, PLAN_CHOICES[label] ?? label));
  words.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); choose("keep"); } });
  return el("div", { class: "ask", role: "group", tabindex: "-1", "aria-label": "Plan" }, el("h2", {}, "Start with this plan?"), plan, field,
    el("div", { class: "row" }, ...buttons, words), el("div", { class: "row" }, el("button", { type: "button", on: { click: () => answer(null) } }, "Decide later")));
}

export function questionsNode(line, answer) {
  if (line.questions[0]?.is_plan) return planNode(line.questions[0], answer);
  const sets = line.questions.map((question, at) => {
    const own = el("input", { type: "text", placeholder: question.options?.length ? "Something else" : "Answer", "aria-label": `Your own answer: ${question.text}` });
    const boxes = (question.options ?? []).map((option) =>
      [option.label, el("input", { type: question.several ? "checkbox" : "radio", name: `${line.question_id}-${at}` }), option.description]);
    const node = el("fieldset", {}, el("legend", {}, question.text),
      ...boxes.map(([label, box, about]) => el("label", {}, box, el("span", {}, label, about ? el("small", {}, about) : null))), own);
    return { node, read: () => ({ chosen: boxes.filter(([, box]) => box.checked).map(([label]) => label), text: own.value }) };
  });
  const send = () => answer(sets.map((each) => each.read()));
  const node = el("div", { class: "ask", role: "group", tabindex: "-1", "aria-label": "Questions" }, ...sets.map((each) => each.node),
    el("div", { class: "row" }, el("button", { type: "button", class: "main", on: { click: send } }, "Answer"),
      el("button", { type: "button", on: { click: () => answer(null) } }, "Skip")));
  node.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.type === "text" && !event.isComposing) { event.preventDefault(); send(); }
  });
  return node;
}

const TODO = { pending: "○", in_progress: "◐", completed: "●", cancelled: "⊘" };
const todoItems = (items) => el("ul", { class: "todo" }, ...items.map((item) => {
  const status = Object.hasOwn(TODO, item?.status) ? item.status : "pending";
  return el("li", { class: status }, `${TODO[status]} ${typeof item === "string" ? item : item?.text ?? item?.content ?? ""}`);
}));

export function showTodo(node, items) {
  const open = items.filter((item) => item.status === "pending" || item.status === "in_progress");
  node.hidden = !open.length;
  const current = items.find((item) => item.status === "in_progress") ?? open[0];
  node.querySelector("summary").replaceChildren(el("b", {}, `${items.length - open.length}/${items.length}`), clean(` ${current?.text ?? ""}`));
  node.querySelector("ul").replaceWith(todoItems(items));
}

export { clean, codeBlock, copyButton, diff, el };
