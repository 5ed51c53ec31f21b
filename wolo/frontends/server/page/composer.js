// The prompt: text, images, and completion of slash commands.
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
  return taken;
}

/** Puts back what could not be sent, before what was typed meanwhile. */
export function giveBack(taken) {
  text.value = [taken.words, text.value].filter(Boolean).join("\n");
  images = [...taken.images, ...images];
  drawImages();
  grow();
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

async function complete(session) {
  const typed = /^\/([\w:.-]*)$/.exec(text.value)?.[1];
  if (typed === undefined || !session) return close();
  if (owner !== session) [commands, owner] = [null, session];
  commands ??= await json("GET", at(session, "commands")).catch(() => []);
  if (text.value !== `/${typed}`) return;
  const wanted = typed.toLowerCase();
  const found = commands.filter((each) => each.name.toLowerCase().startsWith(wanted)).slice(0, 50);
  list.replaceChildren(...found.map((each, at) => el("li", { role: "option", id: `completion${at}`, on: { mousedown: (event) => { event.preventDefault(); accept(each); } } },
    el("b", {}, `/${each.name}`), el("span", {}, `${each.usage ? `${each.usage} — ` : ""}${each.about}`))));
  list.found = found;
  list.hidden = !found.length || (found.length === 1 && found[0].name === typed);
  choose(0);
}

function choose(at) {
  const items = [...list.children];
  if (list.hidden) return text.removeAttribute("aria-activedescendant");
  chosen = (at + items.length) % items.length;
  items.forEach((item, number) => item.setAttribute("aria-selected", String(number === chosen)));
  items[chosen].scrollIntoView({ block: "nearest" });
  text.setAttribute("aria-activedescendant", items[chosen].id);
}

function accept(command) {
  text.value = `/${command.name} `;
  close();
  text.focus();
  grow();
}

/** `send` sends; `session` names the current one. */
export function listen(send, session) {
  $("composer").addEventListener("submit", (event) => { event.preventDefault(); send(); });
  text.addEventListener("input", () => { grow(); complete(session()); });
  text.addEventListener("blur", close);
  text.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (!list.hidden) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) { event.preventDefault(); return choose(chosen + step); }
      if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey)) { event.preventDefault(); return accept(list.found[chosen]); }
      if (event.key === "Escape") { event.stopPropagation(); return close(); }
    }
    if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); send(); }
  });
}
