// One conversation: reads the server's events and draws them.
import { at, banners, json, open, pause, Refused } from "./server.js";
import { CallView, answerNode, approvalNode, clean, el, endNode, noteNode, promptNode, questionsNode, showTodo, thinkingNode, tokens } from "./views.js";
import { GrowingAnswer } from "./markdown.js";

const $ = (id) => document.getElementById(id);
const log = $("log"), asks = $("asks"), box = $("scroll");
const CAUGHT_UP_MS = 300; // until then come the lines so far
const SILENT_MS = 45000; // the server sends something every 15 s

export function state(words, kind = "") {
  if ($("state").textContent !== words) $("state").textContent = clean(words);
  $("state").className = kind;
}

// Following the newest line, unless the reader has scrolled up

let sticks = true, top = 0;
box.addEventListener("scroll", () => {
  const isAtEnd = box.scrollHeight - box.scrollTop - box.clientHeight < 40;
  if (isAtEnd) sticks = true;
  else if (box.scrollTop < top - 1) sticks = false;
  top = box.scrollTop;
  $("latest").hidden = sticks || isAtEnd;
}, { passive: true });

export function follow(always = false) {
  if (always) sticks = true;
  if (sticks) box.scrollTop = box.scrollHeight;
  top = box.scrollTop;
  $("latest").hidden = sticks;
}
new ResizeObserver(() => follow()).observe(log);
new ResizeObserver(() => follow()).observe(box);
$("latest").addEventListener("click", () => follow(true));

export class Conversation {
  constructor(id, heard) {
    this.id = id;
    this.heard = heard; // called with "status", "result" or "waiting"
    this.last = "";
    this.isBusy = false;
    this.controller = new AbortController();
    this.clear();
  }

  clear() {
    log.replaceChildren();
    log.setAttribute("aria-live", "off"); // until the messages so far are shown
    asks.replaceChildren();
    $("todo").hidden = true;
    this.prompts = [];
    this.calls = new Map();
    this.pending = new Map();
    this.answer = this.thinking = this.waiting = null;
  }

  stop() { this.controller.abort(); }
  get isStopped() { return this.controller.signal.aborted; }
  get isWaiting() { return this.pending.size > 0; }

  async run() {
    for (let wait = 500; !this.isStopped; wait = Math.min(wait * 2, 8000)) {
      try {
        await this.read(() => { wait = 500; });
      } catch (error) {
        if (this.isStopped) return;
        if (error instanceof Refused && error.status < 500) {
          this.stop();
          this.isBusy = false;
          this.heard("status");
          if (error.status !== 401) this.put(noteNode(error.message, "error"));
          state("");
          return;
        }
      }
      if (this.isStopped) return;
      banners("Connection lost. Trying again…", true);
      await pause(wait);
    }
  }

  async read(alive) {
    const silence = new AbortController();
    const signal = AbortSignal.any([this.controller.signal, silence.signal]);
    const headers = this.last ? { "Last-Event-ID": this.last } : {};
    const response = await open("GET", at(this.id, "events"), { headers, signal });
    alive();
    banners();
    if (!this.last) setTimeout(() => { this.isCaughtUp = true; }, CAUGHT_UP_MS);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let watch;
    try {
      for (let rest = ""; ;) {
        clearTimeout(watch);
        watch = setTimeout(() => silence.abort(), SILENT_MS);
        const { value, done } = await reader.read();
        if (done) return;
        const blocks = (rest + value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) this.block(block);
        this.paintSoon();
      }
    } finally {
      clearTimeout(watch);
    }
  }

  block(block) {
    // not by a pattern: U+2028 ends a line there, and is an ordinary character of JSON
    const { id, data } = Object.fromEntries(block.split("\n").map((row) => row.split(/: ([^]*)/, 2)));
    if (!id || !data || this.isStopped) return;
    this.last = id;
    try {
      this.line(JSON.parse(data));
    } catch (error) {
      console.warn(error);
      this.put(noteNode("Something could not be shown here.", "warning"));
    }
  }

  line(line) {
    if (this.limit && (line.type !== "system" || ["request", "retry", "fallback", "init", "status"].includes(line.subtype))) this.endLimit();
    if (line.type === "stream_event") this.delta(line.event);
    else if (line.type === "assistant") this.complete(line.message);
    else if (line.type === "result") this.end(line);
    else if (line.type === "user") line.message.content[0]?.type === "tool_result" ? this.result(line) : this.prompt(line.message);
    else this[`on_${line.subtype}`]?.(line);
  }

  put(node) {
    log.querySelector(".welcome")?.remove();
    this.waiting?.isConnected ? this.waiting.before(node) : log.append(node);
    return node;
  }

  delta(event) {
    if (event.type === "text_delta") (this.answer ??= new GrowingAnswer(this.put(el("div", { class: "answer" })))).text += event.text;
    if (event.type === "thinking_delta") (this.thinking ??= { text: "", node: this.put(thinkingNode("", true)) }).text += event.thinking;
    if (event.type === "tool_input_delta" && !this.waiting) state(`Writing ${event.name}`, "busy");
  }

  paintSoon() {
    if (this.frame) return;
    const draw = () => {
      const began = performance.now();
      if (!this.isStopped) {
        this.answer?.draw();
        if (this.thinking) this.thinking.node.lastChild.textContent = clean(this.thinking.text);
        follow();
      }
      this.rest = 4 * (performance.now() - began); // a long text must not keep the page from answering
      this.frame = null;
    };
    this.frame = this.rest > 40 ? setTimeout(draw, this.rest) : requestAnimationFrame(draw);
  }

  drop() {
    this.answer?.node.remove();
    this.thinking?.node.remove();
    this.answer = this.thinking = null;
  }

  complete(message) {
    this.drop();
    for (const part of message.content) {
      if (part.type === "text" && part.text.trim()) this.put(answerNode(part.text));
      if (part.type === "thinking" && part.thinking.trim()) this.put(thinkingNode(part.thinking));
      if (part.type === "tool_use") {
        const view = new CallView(part.id, part.name, part.input);
        this.calls.set(part.id, view);
        this.put(view.node);
      }
    }
  }

  prompt(message) {
    for (const each of log.querySelectorAll(".redo")) each.remove(); // only until the next prompt
    this.waiting?.remove();
    this.waiting = null;
    const words = message.content.filter((part) => part.type === "text").map((part) => part.text).join("").trim();
    if (words && words !== this.prompts.at(-1)) this.prompts.push(words);
    this.put(promptNode(message.content));
  }

  result(line) {
    for (const part of line.message.content) {
      const view = this.calls.get(part.tool_use_id);
      view?.end(view.isDenied ? "denied" : part.is_error ? "failed" : "done", part.content, line.view);
      for (const [id, asked] of this.pending) if (asked.call === part.tool_use_id) this.settle(id);
    }
  }

  end(line) {
    this.drop();
    for (const id of [...this.pending.keys()]) this.settle(id);
    this.put(endNode(line));
    this.heard("result");
  }

  ask(id, call, node) {
    this.settle(id);
    this.pending.set(id, { call, node });
    asks.append(node);
    state("Waiting for you", "busy");
    if (document.activeElement === document.body) node.focus();
    this.heard("status");
    setTimeout(() => { if (this.pending.has(id) && !this.isStopped) this.heard("waiting"); }, CAUGHT_UP_MS); // not one that was answered long ago
  }

  settle(id) {
    const asked = this.pending.get(id);
    if (!asked) return;
    const hadFocus = asked.node.contains(document.activeElement);
    asked.node.remove();
    this.pending.delete(id);
    if (hadFocus) (asks.firstElementChild ?? $("text")).focus();
    if (this.isBusy && !this.pending.size) state("Working", "busy");
    this.heard("status");
  }

  failed(error) { this.put(noteNode(error.message, "error")); follow(true); }

  /** Sends an answer; the panel cannot be used meanwhile, so that it is sent once. */
  send(id, path, body) {
    const controls = [...(this.pending.get(id)?.node.querySelectorAll("button, input, textarea") ?? [])];
    for (const each of controls) each.disabled = true;
    json("POST", at(this.id, path), body).catch((error) => {
      for (const each of controls) each.disabled = false;
      this.failed(error);
    });
  }

  on_init() { this.clear(); }
  on_request(line) {
    this.drop();
    state("Working", "busy");
    this.context = line.context_tokens;
  }
  on_retry(line) {
    this.drop();
    const end = Date.parse(line.error.resets_at ?? "") || Date.now() + line.delay_s * 1000; // the page may have come later
    const minutes = Math.max(Math.ceil((end - Date.now()) / 60000), 0);
    const when = line.is_limit ? `It goes on by itself in ${minutes} min; another model can be chosen until then.` : `Trying again in ${Math.round(line.delay_s)} s.`;
    const note = noteNode(`${line.error.message} ${when} `, "warning");
    if (line.is_limit) {
      const button = el("button", { type: "button" }, "Ask now");
      button.onclick = () => {
        button.disabled = true;
        json("POST", at(this.id, "resume"), {}).catch((error) => this.failed(error));
      };
      note.append(button);
      this.limit = button;
      this.heard("limit");
    }
    this.put(note);
  }
  endLimit() {
    this.limit.remove();
    this.limit = null;
    this.heard("limit");
  }
  on_fallback(line) { this.drop(); this.put(noteNode(`${line.error.message} ${line.model} answers instead.`, "warning")); }
  on_compaction(line) { this.drop(); this.put(noteNode(`Earlier messages were compacted: ${tokens(line.tokens_before)} → ${tokens(line.tokens_after)} tokens.`)); }
  on_notice(line) { this.put(noteNode(line.text, line.level)); }
  on_mode(line) { this.put(noteNode(line.text)); }
  on_reverted(line) {
    const files = [...line.restored, ...line.removed].map(clean).join(", ") || "no files";
    const undone = line.kind === "undo";
    this.put(el("div", { class: "note" }, `${undone ? "Undone" : "Redone"}: ${files}. `, undone ? el("button", { type: "button", class: "redo" }, "Redo") : null));
  }
  on_activity(line) { state(line.text, "busy"); }
  on_hook_awaited(line) { state(`Waiting for the hook ${line.hook}`, "busy"); }
  on_tool_started(line) { state(line.name, "busy"); }
  on_tool_output(line) { this.calls.get(line.tool_use_id)?.progress(line.text); }
  on_denied(line) {
    const view = this.calls.get(line.tool_use_id);
    if (view) view.isDenied = true;
  }
  on_approval(line) {
    const decide = (decision, reason) => this.send(line.approval_id, "approve", { call_id: line.approval_id, decision, reason });
    this.ask(line.approval_id, line.call_id, approvalNode(line, decide));
  }
  on_approval_given(line) { this.settle(line.approval_id); }
  on_questions(line) {
    const answer = (answers) => this.send(line.question_id, "answer", { call_id: line.question_id, answers });
    this.ask(line.question_id, line.call_id, questionsNode(line, answer));
  }
  on_questions_answered(line) { this.settle(line.question_id); }
  on_todo(line) { showTodo($("todo"), line.items); }
  on_steered(line) {
    this.waiting ??= this.put(el("div", { class: "prompt waiting" }));
    this.waiting.textContent += (this.waiting.textContent ? "\n" : "") + clean(line.text);
  }
  on_verification(line) { this.put(noteNode(`${line.command}: ${line.exit_code === 0 ? "passed" : "failed"}`, line.exit_code === 0 ? "" : "warning")); }
  on_task(line) { this.calls.get(line.tool_use_id)?.task(line); }
  on_job_started(line) { this.put(noteNode(`Background command ${line.id}: ${line.command}`)); }
  on_job_ended(line) { this.put(noteNode(`Background command ${line.id} ended: ${line.exit_code}`)); }
  on_status(line) {
    this.isBusy = line.busy;
    this.model = line.model;
    this.mode = line.mode;
    this.thinking_level = line.thinking;
    if (!line.busy) {
      this.waiting?.remove();
      this.waiting = null;
    }
    if (!this.pending.size) state(line.busy ? "Working" : "", line.busy ? "busy" : "");
    log.setAttribute("aria-live", "polite");
    this.heard("status");
  }
}
