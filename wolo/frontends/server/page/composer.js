// The prompt: text, images, drafts, earlier prompts, and completion of slash commands and files.
import { at, json } from "./server.js";
import { el, noteNode } from "./views.js";

const $ = (id) => document.getElementById(id);
const text = $("text"), list = $("completions");
const MOST_IMAGE_BYTES = 20 * 1024 * 1024;
const TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
let images = [];

export function grow() {
  text.style.height = "auto";
  text.style.height = `${text.scrollHeight + 2}px`;
}

export const isEmpty = () => !text.value.trim() && !images.length;

/** Takes what was entered, and leaves the composer empty. */
export function take() {
  const taken = { words: text.value.trim(), images };
  text.value = "";
  images = [];
  drawImages();
  close();
  grow();
  saveDraft();
  return taken;
}

/** Puts back what could not be sent, before what was typed meanwhile. */
export function giveBack(taken) {
  text.value = [taken.words, text.value].filter(Boolean).join("\n");
  images = [...taken.images, ...images];
  drawImages();
  grow();
  saveDraft();
}

// Drafts: the text of each session is in the browser until it is sent

let draftOf = "";

function saveDraft() {
  try {
    if (text.value) localStorage.setItem(`draft ${draftOf}`, text.value);
    else localStorage.removeItem(`draft ${draftOf}`);
  } catch { /* the browser keeps nothing */ }
}

/** Shows the draft of a session; empty: of a new one. */
export function showDraft(session) {
  if (draftOf === session && text.value) return;
  draftOf = session;
  let draft = "";
  try { draft = localStorage.getItem(`draft ${session}`) ?? ""; } catch { /* as above */ }
  text.value = draft;
  recalled = -1;
  close();
  grow();
}

// Earlier prompts, with the arrow keys

let recalled = -1; // steps back; -1: none

function recall(step, prompts) {
  const next = recalled + step, isOurs = recalled >= 0 && text.value === prompts.at(-1 - recalled);
  if ((text.value && !isOurs) || next >= prompts.length || next < -1) return false;
  recalled = next;
  text.value = next < 0 ? "" : prompts.at(-1 - next);
  text.setSelectionRange(text.value.length, text.value.length);
  grow();
  saveDraft();
  return true;
}

// Images

const read = (file) => new Promise((done, failed) => {
  const reader = new FileReader();
  reader.onload = () => done(reader.result);
  reader.onerror = () => failed(new Error(`${file.name} cannot be read.`));
  reader.readAsDataURL(file);
});

async function add(files) {
  const notes = [];
  for (const file of files) {
    const size = images.reduce((sum, image) => sum + image.size, 0);
    if (!TYPES.includes(file.type)) notes.push(`${file.name} is no PNG, JPEG, GIF or WebP image.`);
    else if (size + file.size > MOST_IMAGE_BYTES) notes.push(`${file.name} is too large: all images of a prompt have ${MOST_IMAGE_BYTES / 1024 / 1024} MB together at most.`);
    else images.push({ name: file.name, size: file.size, data: await read(file) });
  }
  drawImages(notes);
}

function drawImages(notes = []) {
  $("images").replaceChildren(...images.map((image) => el("span", { class: "thumb" }, el("img", { src: image.data, alt: image.name }),
    el("button", { type: "button", "aria-label": `Remove ${image.name}`, on: { click: () => { images = images.filter((each) => each !== image); drawImages(); text.focus(); } } }, "✕"))),
  ...notes.map((note) => noteNode(note, "warning")));
}

$("attach").addEventListener("click", () => $("file").click());
$("file").addEventListener("change", () => { add([...$("file").files]); $("file").value = ""; text.focus(); });
text.addEventListener("paste", (event) => {
  const files = [...event.clipboardData.files];
  if (files.length) { event.preventDefault(); add(files); }
});
for (const name of ["dragover", "drop", "dragleave"]) document.addEventListener(name, (event) => {
  if (![...(event.dataTransfer?.types ?? [])].includes("Files")) return;
  event.preventDefault();
  document.body.classList.toggle("dropping", name === "dragover");
  if (name === "drop") add([...event.dataTransfer.files]);
});

// Completion

let commands = null, chosen = 0, owner = null;

function close() {
  list.hidden = true;
  text.removeAttribute("aria-activedescendant");
}

async function complete(session, folder) {
  const before = text.value.slice(0, text.selectionStart);
  const command = /^\/([\w:.-]*)$/.exec(text.value)?.[1];
  if (command !== undefined && session) return offer(await commandsFor(session, command));
  const file = /(?:^|[^\w@])@([^\s"@:]*)$/.exec(before)?.[1];
  if (file === undefined) return close();
  const where = session ? `session=${encodeURIComponent(session)}` : `cwd=${encodeURIComponent(folder)}`;
  const { matches } = await json("GET", `/v1/find?q=${encodeURIComponent(file)}&${where}`).catch(() => ({ matches: [] }));
  if (text.value.slice(0, text.selectionStart) !== before) return;
  offer(matches.slice(0, 50).map((name) => ({ name, title: name, about: "", put: () => putFile(before, file, name) })));
}

async function commandsFor(session, typed) {
  if (owner !== session) [commands, owner] = [null, session];
  commands ??= await json("GET", at(session, "commands")).catch(() => []);
  if (text.value !== `/${typed}`) return [];
  const fits = commands.filter((each) => each.name.toLowerCase().startsWith(typed.toLowerCase())).slice(0, 50);
  if (fits.length === 1 && fits[0].name === typed) return [];
  return fits.map((each) => ({ title: `/${each.name}`, about: `${each.usage ? `${each.usage} — ` : ""}${each.about}`, put: () => put(`/${each.name} `, text.value.length) }));
}

function offer(found) {
  list.replaceChildren(...found.map((each, at) => el("li", { role: "option", id: `completion${at}`, "aria-selected": "false", on: { mousedown: (event) => { event.preventDefault(); accept(each); } } },
    el("b", {}, each.title), el("span", {}, each.about))));
  list.found = found;
  list.hidden = !found.length;
  choose(0);
}

/** Replaces the text up to a place; the cursor is behind the new one. */
function put(words, end) {
  text.value = words + text.value.slice(end);
  text.setSelectionRange(words.length, words.length);
}

function putFile(before, typed, name) {
  const isFolder = name.endsWith("/"), isPlain = !/[\s"@:]/.test(name);
  const mention = isPlain ? `@${name}` : `@"${name.replace(/[\\"]/g, "\\$&")}"`;
  put(before.slice(0, before.length - typed.length - 1) + mention + (isFolder ? "" : " "), before.length);
  return isFolder && isPlain;
}

function choose(at) {
  const items = [...list.children];
  if (list.hidden) return text.removeAttribute("aria-activedescendant");
  chosen = (at + items.length) % items.length;
  items.forEach((item, number) => item.setAttribute("aria-selected", String(number === chosen)));
  items[chosen].scrollIntoView({ block: "nearest" });
  text.setAttribute("aria-activedescendant", items[chosen].id);
}

function accept(found) {
  const goesOn = found.put();
  close();
  text.focus();
  grow();
  saveDraft();
  if (goesOn) text.dispatchEvent(new Event("input"));
}

/** `send` sends; `session` names the current one, `folder` that of a new one; `prompts` are the earlier ones. */
export function listen(send, session, folder, prompts) {
  let typing;
  $("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
  text.addEventListener("input", () => {
    grow();
    saveDraft();
    clearTimeout(typing);
    typing = setTimeout(() => complete(session(), folder()), text.value.startsWith("/") ? 0 : 80);
  });
  text.addEventListener("blur", close);
  text.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (!list.hidden) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) { event.preventDefault(); return choose(chosen + step); }
      if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) { event.preventDefault(); return accept(list.found[chosen]); }
      if (event.key === "Escape") { event.stopPropagation(); return close(); }
    }
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); return send(); }
    const back = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (back && !event.shiftKey && !event.altKey && !event.ctrlKey && recall(back, prompts())) event.preventDefault();
  });
}
