// The page: a list of sessions, the one that is shown, and what can be done with it.
import { giveBack, grow, isEmpty, listen, showDraft, take } from "./composer.js";
import { Conversation, follow, state } from "./conversation.js";
import { at, banners, json, open, pause } from "./server.js";
import { clean, copyButton, diff, el, money, noteNode, tokens } from "./views.js";

const $ = (id) => document.getElementById(id);
const log = $("log"), text = $("text");
const MOST_LISTED = 100;
let session = null, stream = null, known = [], choices = null, listed = "", most = MOST_LISTED;

const on = (path, body = {}) => json("POST", at(session, path), body);
function tell(error) {
  log.querySelector(".welcome .note")?.remove();
  const node = noteNode(error.message, "error");
  (stream ? log : log.querySelector(".welcome") ?? log).append(node);
  follow(true);
}
const run = (work) => (...given) => work(...given).catch(tell);
const isBusy = () => stream?.isBusy ?? false;
const current = () => known.find((each) => each.id === session);
const titleOf = (each) => clean(each?.name || each?.title || "New session").split("\n")[0];

// Sessions

async function listSessions() {
  known = await json("GET", "/v1/sessions");
  draw();
}

function draw() {
  if (!$("search").value.trim()) {
    const shown = known.filter((each) => !each.task_of || each.id === session);
    const rows = shown.slice(0, most).map((each) => ({ folder: each.cwd, id: each.id, name: titleOf(each), about: [since(each.updated), each.model.split("/").pop()].filter(Boolean).join(" · "), isBusy: each.busy }));
    list(rows, shown.length - rows.length);
  }
  const title = session ? titleOf(current()) : "New session";
  if ($("title").textContent !== title) $("title").textContent = title;
  $("title").title = current()?.cwd ?? "";
  document.title = `${stream?.isWaiting ? "! " : isBusy() ? "● " : ""}${session ? `${title} · ` : ""}wolo`;
  drawBar();
}

const base = (path) => path.split("/").pop() || path;

function since(time) {
  const minutes = Math.floor((Date.now() - Date.parse(time)) / 60000);
  if (!(minutes >= 0)) return "";
  if (minutes < 1) return "now";
  if (minutes < 60) return `${minutes} min`;
  return minutes < 1440 ? `${Math.floor(minutes / 60)} h` : minutes < 43200 ? `${Math.floor(minutes / 1440)} d` : new Date(time).toISOString().slice(0, 10);
}

function list(rows, more = 0) {
  const now = JSON.stringify([session, rows, more]);
  if (now === listed) return;
  listed = now;
  const focused = document.activeElement?.closest?.("#sessions [data-id]")?.dataset.id;
  const folders = Map.groupBy ? Map.groupBy(rows, (row) => row.folder ?? "") : new Map([["", rows]]);
  $("sessions").replaceChildren(...(folders.size > 1 || rows[0]?.folder ? [...folders].map(([folder, some]) => group(folder, some)) : rows.map(item)));
  if (more > 0) $("sessions").append(el("li", {}, el("button", { type: "button", class: "plain", on: { click: () => { most += 500; draw(); } } }, `${more} more`)));
  if (focused) $("sessions").querySelector(`[data-id="${CSS.escape(focused)}"]`)?.focus();
}

const folded = new Set();
function group(folder, rows) {
  const node = el("details", { open: !folded.has(folder) }, el("summary", { title: clean(folder) }, base(folder) || "elsewhere"), el("ul", {}, ...rows.map(item)));
  node.addEventListener("toggle", () => { node.open ? folded.delete(folder) : folded.add(folder); });
  return el("li", { class: "folder" }, node);
}

function item({ id, name, about, isBusy }) {
  const go = () => { id === session ? close() : (location.hash = encodeURIComponent(id)); };
  return el("li", { class: isBusy ? "busy" : "" }, el("button", { type: "button", "aria-current": String(id === session), "data-id": id, title: name, on: { click: go } },
    el("span", { class: "name" }, name), el("span", { class: "about" }, about)));
}

$("sessions").addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const all = [...$("sessions").querySelectorAll("summary, details[open] button, :scope > li > button")];
  if (step) { event.preventDefault(); all[all.indexOf(document.activeElement) + step]?.focus(); }
});

let searching = 0;
$("search").addEventListener("input", () => {
  clearTimeout(searching);
  const words = $("search").value.trim();
  if (!words) return draw();
  const fits = (each) => `${titleOf(each)} ${each.cwd} ${each.model}`.toLowerCase().includes(words.toLowerCase());
  const named = known.filter(fits).slice(0, MOST_LISTED).map((each) => ({ id: each.id, name: titleOf(each), about: [since(each.updated), base(each.cwd)].join(" · "), isBusy: each.busy }));
  list(named);
  searching = setTimeout(async () => {
    try {
      const hits = await json("GET", `/v1/search?q=${encodeURIComponent(words)}`);
      if (words !== $("search").value.trim()) return;
      const found = hits.filter((hit) => !named.some((each) => each.id === hit.id)).map((hit) => ({ id: hit.id, name: clean(hit.title), about: clean(hit.snippet) }));
      list([...named, ...found]);
      if (!named.length && !found.length) $("sessions").replaceChildren(noteNode("Nothing found."));
    } catch (error) {
      listed = "";
      $("sessions").replaceChildren(noteNode(error.message, "warning"));
    }
  }, 200);
});

function heard(what) {
  if (what === "result") listSessions().catch(() => {});
  if (what === "waiting") alertUser("wolo waits for you");
  if (what === "result" && stream?.isCaughtUp) alertUser("wolo is done");
  const busy = isBusy();
  $("stop").hidden = !busy;
  $("send").textContent = busy ? "Steer" : "Send";
  $("undo").disabled = busy;
  draw();
}

// Notifications, while the page is not looked at

function alertUser(words) {
  if (document.hasFocus() || !("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification(words, { body: titleOf(current()), tag: session });
  shown.onclick = () => { window.focus(); shown.close(); };
}

function drawNotify() {
  $("notify").hidden = !("Notification" in window) || Notification.permission !== "default";
}
$("notify").addEventListener("click", async () => { await Notification.requestPermission(); drawNotify(); text.focus(); });
drawNotify();

function close() {
  document.body.classList.remove("menu", "more");
  for (const name of ["menu", "more"]) $(name).setAttribute("aria-expanded", "false");
}

function show(id) {
  close();
  stream?.stop();
  session = id || null;
  showDraft(session ?? "");
  stream = session ? new Conversation(session, heard) : null;
  if (!session) {
    log.replaceChildren(el("div", { class: "welcome" }, el("b", {}, "wolo"), "What shall we do?"));
    $("asks").replaceChildren();
    $("todo").hidden = true;
    state("");
  }
  $("more").hidden = $("tools").hidden = !session;
  follow(true);
  heard("status");
  stream?.run();
  if (matchMedia("(hover: hover)").matches) text.focus({ preventScroll: true });
}

// Mode, model and folder

async function choose(cwd = "") {
  const before = { mode: $("mode").value, model: $("model").value };
  const found = await json("GET", `/v1/choices?cwd=${encodeURIComponent(cwd)}`);
  if (choices && cwd !== $("folder").value) return;
  choices = found;
  for (const name of ["mode", "model"]) if ($(name).value === before[name]) $(name).value = ""; // not what was chosen meanwhile
  drawBar();
}

const label = (name, about) => `${name}${about ? ` — ${about}` : ""}`;

function fill(select, values, value) {
  const all = value && !values.some((each) => each.name === value) ? [{ name: value }, ...values] : values;
  const now = JSON.stringify(all);
  if (select.filled !== now) {
    select.replaceChildren(...all.map((each) => el("option", { value: each.name, label: each.name, title: label(each.name, each.about) }, each.name)));
    select.filled = now;
  }
  if (value && document.activeElement !== select) select.value = value;
  select.shown = select.value;
}

function drawBar() {
  const row = current();
  const [mode, model] = session ? [stream?.mode ?? row?.mode, stream?.model ?? row?.model] : [$("mode").value || choices?.mode, $("model").value || choices?.model];
  fill($("mode"), choices?.modes ?? [], mode);
  fill($("model"), choices?.models ?? [], model);
  $("mode").title = label(mode, choices?.modes.find((each) => each.name === mode)?.about);
  $("model").disabled = isBusy() && !stream.limit;
  $("thinking").textContent = stream?.thinking_level ? `thinking ${stream.thinking_level}` : "";
  $("folder").hidden = Boolean(session);
  if (!session && choices && document.activeElement !== $("folder")) $("folder").value = choices.cwd;
  $("where").textContent = session ? clean(row?.cwd ?? "") : "";
  $("cost").textContent = session && row?.tokens ? [`${tokens(row.tokens)} tokens`, money(row.cost_usd)].filter(Boolean).join(" · ") : "";
  const folders = [...new Set(known.map((each) => each.cwd))].slice(0, 30);
  if ($("folders").children.length !== folders.length) $("folders").replaceChildren(...folders.map((each) => el("option", { value: each })));
}

const UNSAFE = "yolo";
async function sure() {
  const yes = el("button", { type: "button", on: { click: () => $("dialog").close(UNSAFE) } }, "Yes, ask nothing");
  dialog("Mode yolo?", noteNode("Commands run outside the sandbox, and nothing asks before it changes or deletes files.", "warning"), el("div", { class: "row" }, yes));
  await new Promise((closed) => $("dialog").addEventListener("close", closed, { once: true }));
  return $("dialog").returnValue === UNSAFE;
}

for (const name of ["mode", "model"]) $(name).addEventListener("change", run(async () => {
  const value = $(name).value, asked = session, before = $(name).shown;
  if (value === UNSAFE && (!await sure() || asked !== session)) {
    $(name).value = session ? "" : before;
    $(name).blur();
    return drawBar();
  }
  const isOther = name === "model" && stream?.limit; // it answers until the limit ends
  if (session) await (isOther ? on("resume", { model: value }) : on("change", { [name]: value })).finally(() => { $(name).blur(); drawBar(); });
  text.focus();
}));
$("folder").addEventListener("change", run(() => choose($("folder").value)));

// The prompt

let sending = false;
const send = run(async () => {
  if (isEmpty() || sending) return;
  sending = true;
  const taken = take();
  try {
    if (!session) {
      const made = await json("POST", "/v1/sessions", { cwd: $("folder").value, mode: $("mode").value, model: $("model").value });
      history.pushState(null, "", `#${made.id}`);
      session = made.id;
      known.unshift(made);
      show(made.id);
    }
    if (isBusy() && taken.images.length) throw new Error("Images can be sent when the turn has ended.");
    await (isBusy() ? on("steer", { text: taken.words }) : on("prompt", { text: taken.words, typed: true, images: taken.images.map(({ data, name }) => ({ data, name })) }));
    follow(true);
    listSessions().catch(() => {});
  } catch (error) {
    giveBack(taken);
    throw error;
  } finally {
    sending = false;
  }
});
listen(send, () => session, () => $("folder").value, () => stream?.prompts ?? []);

const stop = run(() => on("interrupt"));
$("stop").addEventListener("click", stop);
$("skip").addEventListener("click", (event) => { event.preventDefault(); text.focus(); });
$("new").addEventListener("click", () => { location.hash = ""; close(); text.focus(); });
for (const name of ["menu", "more"]) $(name).addEventListener("click", () => {
  const isOpen = document.body.classList.toggle(name);
  $(name).setAttribute("aria-expanded", String(isOpen));
  if (isOpen && name === "menu") $("search").focus({ preventScroll: true });
});
$("scroll").addEventListener("click", close);
document.addEventListener("keydown", (event) => {
  const isOpen = document.body.classList.contains("menu") || document.body.classList.contains("more");
  const isTyping = /INPUT|TEXTAREA|SELECT/.test(document.activeElement.tagName);
  if (event.key === "Escape" && isOpen) close();
  else if (event.key === "Escape" && isBusy() && !$("dialog").open) stop();
  else if (event.altKey && event.code === "KeyN") { event.preventDefault(); $("new").click(); }
  else if (event.altKey && event.code === "KeyA") { event.preventDefault(); $("asks").querySelector("button, input")?.focus(); }
  else if (event.key === "?" && !isTyping && !$("dialog").open) { event.preventDefault(); help(); }
  else if (event.altKey && event.code === "KeyC" && session) { event.preventDefault(); $("diff").click(); }
  else if (event.altKey && event.code === "KeyS") { event.preventDefault(); document.body.classList.add("menu"); $("search").focus(); }
  else if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey) { event.preventDefault(); text.focus(); }
});

// Actions on a session

function dialog(title, ...nodes) {
  $("dialog").querySelector("h2").textContent = title;
  $("dialog").querySelector("form > div").replaceChildren(...nodes);
  $("dialog").returnValue = "";
  if (!$("dialog").open) $("dialog").showModal();
}

const KEYS = {
  "Enter": "send, or steer the running turn", "Shift+Enter": "a new line", "↑ ↓": "earlier prompts, in an empty prompt",
  "@": "complete a file", "/": "complete a command, in the prompt; elsewhere: to the prompt", "Tab": "take the completion",
  "Esc": "stop the turn; close a menu", "Alt+N": "new session", "Alt+S": "search sessions", "Alt+C": "changes of this session", "Alt+A": "to what waits for you", "?": "this list",
};
function help() {
  dialog("Keys", el("dl", { class: "keys" }, ...Object.entries(KEYS).flatMap(([key, about]) => [el("dt", {}, key), el("dd", {}, about)])));
}
$("help").addEventListener("click", () => { close(); help(); });

const near = (path) => { const folder = `${current()?.cwd}/`; return path.startsWith(folder) ? path.slice(folder.length) : path; };
const action = (name, work) => $(name).addEventListener("click", () => { close(); run(work)(); });
action("diff", async () => {
  const { files, patch } = await json("GET", at(session, "diff"));
  const each = (file) => el("details", { class: "file", open: files.length < 8 }, el("summary", {}, near(file.path)), diff(file.patch));
  dialog("Changes of this session", ...(files.length ? [el("div", { class: "code" }, copyButton(() => patch, "Copy as a patch"), ...files.map(each))] : [noteNode("No files were changed.")]));
});
/** Asks with what would be restored, then does it: "undo" or "redo". */
async function revert(kind) {
  const planned = await on(kind, { preview: true });
  const row = (name, paths) => (paths.length ? noteNode(`${name}: ${paths.map(clean).join(", ")}`, name === "Left alone" ? "warning" : "") : null);
  const go = run(async () => {
    $("dialog").close();
    const done = await on(kind, { anyway: true });
    if (!text.value) text.value = done.draft;
    grow();
    listSessions().catch(() => {});
  });
  const nothing = !(planned.restored.length || planned.removed.length || planned.conflicts.length);
  dialog(kind === "undo" ? "Undo the last turn?" : "Redo what was undone?", ...[
    ...planned.turns.map((each) => noteNode(clean(each).slice(0, 300))),
    row("Restores", planned.restored), row("Removes", planned.removed), row("Left alone", planned.conflicts.map((path) => `${path} (${planned.reasons[path]})`)),
    nothing ? noteNode("No files change.") : null, ...planned.not_covered.map((each) => noteNode(each)),
    el("div", { class: "row" }, el("button", { type: "button", id: "revert", on: { click: go } }, kind === "undo" ? "Undo" : "Redo"))].filter(Boolean));
}
action("undo", () => revert("undo"));
log.addEventListener("click", (event) => { if (event.target.closest?.(".changes")) $("diff").click(); });
log.addEventListener("click", (event) => { if (event.target.closest?.(".redo")) run(revert)("redo"); });
action("fork", async () => {
  const made = await on("fork");
  await listSessions();
  location.hash = made.id;
});
action("rename", async () => {
  const input = el("input", { value: titleOf(current()), "aria-label": "Title", maxlength: "200", autocomplete: "off" });
  const save = run(async () => {
    if (input.value.trim()) await on("change", { title: input.value });
    $("dialog").close();
    await listSessions();
  });
  input.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.isComposing) { event.preventDefault(); save(); } });
  dialog("Rename", el("div", { class: "row" }, input, el("button", { type: "button", on: { click: save } }, "Save")));
  input.select();
});
const FORMATS = { markdown: ["Markdown", "md"], html: ["Web page", "html"], jsonl: ["wolo (JSON Lines)", "jsonl"], openai: ["OpenAI messages", "json"], atif: ["ATIF trajectory", "json"] };
action("export", async () => {
  const save = async (format, ending) => {
    const address = URL.createObjectURL(await (await open("GET", at(session, `export?format=${format}`))).blob());
    el("a", { href: address, download: `${session}.${ending}` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
    $("dialog").close();
  };
  dialog("Export", el("div", { class: "row" }, ...Object.entries(FORMATS).map(([format, [name, ending]]) =>
    el("button", { type: "button", on: { click: run(() => save(format, ending)) } }, name))));
});

// Runs of `wolo batch`

const price = (usd) => usd === null ? "cost unknown" : `$${usd.toFixed(usd < 1 ? 4 : 2)}`;
const counts = (run) => [...Object.entries(run.states).map(([state, count]) => `${count} ${state}`), `${run.tokens.toLocaleString("en")} tokens`, price(run.cost_usd)].join(" · ");
const taskRow = (task) => el("tr", {}, el("td", {}, task.id), el("td", {}, task.state), el("td", {}, task.attempt ? String(task.attempt) : ""), el("td", {}, task.attempt && task.cost_usd !== null ? price(task.cost_usd) : ""), el("td", {}, task.error?.message ?? (task.state === "leased" ? task.note : "")));
const showsRuns = () => $("dialog").open && $("dialogTitle").textContent === "Batches";
async function showRuns(isWanted = () => true) {
  const runs = await Promise.all((await json("GET", "/v1/runs")).map((_, number) => json("GET", `/v1/runs/${number}`)));
  if (!isWanted()) return;  // closed meanwhile
  const opened = new Set([...$("dialog").querySelectorAll("details[open]")].map((each) => each.dataset.folder));
  dialog("Batches", ...runs.map((run) => {
    const node = el("details", { class: "file", open: opened.has(run.folder) || runs.length === 1 }, el("summary", {}, `${run.name}: ${counts(run)}`),
      el("div", { class: "answer" }, el("div", { class: "table" }, el("table", {}, el("tbody", {}, ...run.tasks.map(taskRow))))), ...(run.left_out ? [noteNode(`${run.left_out} more tasks: wolo batch export ${run.folder} --format html`)] : []));
    node.dataset.folder = run.folder;
    return node;
  }));
}
$("runs").addEventListener("click", run(async () => {
  await showRuns();
  const again = setInterval(() => { if (showsRuns()) showRuns(showsRuns).catch(() => {}); else clearInterval(again); }, 2000);
}));
json("GET", "/v1/runs").then((runs) => { $("runs").hidden = !runs.length; }).catch(() => {});

function here() {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return location.hash.slice(1);
  }
}
for (const name of ["hashchange", "popstate"]) addEventListener(name, () => { if (here() !== (session ?? "")) show(here()); });

async function begin() {
  show(here());
  for (;;) {
    try {
      await Promise.all([listSessions(), choose()]);
      break;
    } catch (error) {
      if (error.status) return tell(error);
      banners("The server cannot be reached. Trying again…", true);
      await pause(3000);
    }
  }
  banners();
  for (;;) {
    await pause(5000);
    if (!document.hidden) await listSessions().catch(() => {});
  }
}
begin();
