// Markdown to DOM nodes. Text only ever becomes text nodes, and links only http, https and mailto.

export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") for (const [event, run] of Object.entries(value)) node.addEventListener(event, run);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  return add(node, children.flat());
}

/** Appends any number of children. */
export function add(node, children) {
  for (const child of children) if (child != null) node.append(typeof child === "string" ? clean(child) : child);
  return node;
}

const ESCAPES = /\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[@-Z\\-_]?|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;

const HIDDEN = /[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e0fff}]/gu;

/** Without terminal escapes and control characters; characters that cannot be seen or turn the direction of text are named. */
export function clean(text) {
  return text.replace(/\r\n?/g, "\n").replace(ESCAPES, "").replace(HIDDEN, (each) => `⟨U+${each.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

const MOST_LINES = 1500, LONGEST_LINE = 2000, LONGEST_INLINE = 20000;

export function copyButton(read, name = "Copy") {
  const button = el("button", { type: "button", class: "copy", "aria-label": name, title: name });
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(read());
    button.classList.add("copied");
    setTimeout(() => button.classList.remove("copied"), 1500);
  });
  return button;
}

export const codeBlock = (text) => el("div", { class: "code" }, el("pre", { tabindex: "0" }, el("code", {}, text)), copyButton(() => text, "Copy code"));

const INLINE = /(\$\$[^$]{1,2000}\$\$|\\\([^\n]{1,500}?\\\)|\\\[[\s\S]{1,2000}?\\\])|(?<!`)(`{1,8})(?!`)([\s\S]{0,2000}?[^`])\2(?!`)|\*\*([^\s*][\s\S]*?)\*\*|(?<![\w*])\*([^\s*][^*\n]*?)\*(?!\w)|(?<!\w)_([^\s_][^_\n]*?)_(?!\w)|~~([^~\n]+)~~|\[([^\]\n]{1,300})\]\(([^()\s]{1,2000})\)|(https?:\/\/[^\s<>"'`]{1,2000}[^\s<>"'`.,;:!?)\]])|\\([!-/:-@[-`{-~])/g;

function link(text, address) {
  const node = el("a", { href: address, target: "_blank", rel: "noopener noreferrer", title: address }, ...text);
  const named = /^\s*(?:https?:\/\/)?((?:[\w-]+\.)+[a-z]{2,})(?=[/:?#\s]|$)/i.exec(node.textContent)?.[1].toLowerCase();
  const host = node.hostname.toLowerCase();
  if (named && host && named !== host && `www.${named}` !== host) node.append(` (${host})`);
  return node;
}

export function inline(text, depth = 0) {
  const nodes = [];
  let at = 0;
  if (depth > 4 || text.length > LONGEST_INLINE) return [clean(text)];
  for (const found of text.matchAll(INLINE)) {
    if (found.index > at) nodes.push(clean(text.slice(at, found.index)));
    at = found.index + found[0].length;
    const [, math, , code, bold, italic, italic2, gone, label, address, bare, escaped] = found;
    if (math) nodes.push(el("code", {}, math));
    else if (code !== undefined) nodes.push(el("code", {}, code.trim() || code));
    else if (bold) nodes.push(el("strong", {}, ...inline(bold, depth + 1)));
    else if (italic || italic2) nodes.push(el("em", {}, ...inline(italic || italic2, depth + 1)));
    else if (gone) nodes.push(el("del", {}, gone));
    else if (label) nodes.push(/^(https?:|mailto:)/i.test(address) ? link(inline(label, depth + 1), address) : clean(found[0]));
    else if (bare) nodes.push(link([bare], bare));
    else nodes.push(escaped);
  }
  if (at < text.length) nodes.push(clean(text.slice(at)));
  return nodes;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)/, ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/, HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const LONGEST_DIVIDER = 400;
const RULE = /^ {0,3}([-*_])( *\1){2,}\s*$/, DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());

export function markdown(text, depth = 0) {
  const lines = text.split("\n"), nodes = [];
  let at = 0, level = 1; // of the heading before; none is left out, for those who jump from heading to heading
  const begins = (line) => FENCE.test(line) || ITEM.test(line) || HEADING.test(line) || RULE.test(line) || /^ {0,3}>/.test(line);
  while (at < lines.length) {
    const line = lines[at];
    let found;
    if (!line.trim()) at += 1;
    else if ((found = FENCE.exec(line))) {
      const body = [];
      for (at += 1; at < lines.length && !lines[at].trim().startsWith(found[1]); at += 1) body.push(lines[at]);
      at += 1;
      nodes.push(found[2] === "diff" ? diff(body.join("\n")) : codeBlock(body.join("\n")));
    } else if ((found = HEADING.exec(line))) {
      level = Math.min(found[1].length + 1, level + 1, 6);
      nodes.push(el(`h${level}`, {}, ...inline(found[2].trimEnd().replace(/ #{1,6}$/, ""))));
      at += 1;
    } else if (RULE.test(line)) {
      nodes.push(el("hr"));
      at += 1;
    } else if (/^ {0,3}>/.test(line) && depth < 8) {
      const body = [];
      for (; at < lines.length && /^ {0,3}>/.test(lines[at]); at += 1) body.push(lines[at].replace(/^ {0,3}> ?/, ""));
      nodes.push(el("blockquote", {}, markdown(body.join("\n"), depth + 1)));
    } else if (ITEM.test(line) && depth < 8) {
      const [taken, node] = list(lines, at, depth);
      nodes.push(node);
      at = taken;
    } else if (line.includes("|") && lines[at + 1]?.length < LONGEST_DIVIDER && DIVIDER.test(lines[at + 1]) && lines[at + 1].includes("-")) {
      const head = el("tr", {}, cells(line).map((cell) => el("th", {}, ...inline(cell)))), rows = [];
      for (at += 2; at < lines.length && lines[at].includes("|"); at += 1) {
        rows.push(el("tr", {}, cells(lines[at]).map((cell) => el("td", {}, ...inline(cell)))));
      }
      nodes.push(el("div", { class: "table", tabindex: "0" }, el("table", {}, el("thead", {}, head), el("tbody", {}, rows))));
    } else {
      const body = [line];
      for (at += 1; at < lines.length && lines[at].trim() && !begins(lines[at]); at += 1) body.push(lines[at]);
      nodes.push(el("p", {}, ...inline(body.join("\n"))));
    }
  }
  return nodes;
}

function list(lines, at, depth) {
  const [, indent, mark] = ITEM.exec(lines[at]), ordered = /\d/.test(mark);
  const node = el(ordered ? "ol" : "ul", ordered && parseInt(mark) !== 1 ? { start: parseInt(mark) } : {});
  while (at < lines.length) {
    const found = ITEM.exec(lines[at]);
    if (!found || found[1].length !== indent.length || /\d/.test(found[2]) !== ordered) break;
    const body = [found[3].replace(/^\[([ xX])\] /, (_, mark) => (mark === " " ? "☐ " : "☑ "))];
    for (at += 1; at < lines.length; at += 1) {
      const next = ITEM.exec(lines[at]);
      if (next && next[1].length <= indent.length) break;
      if (!lines[at].trim() && !/^\s{2,}\S/.test(lines[at + 1] ?? "")) break;
      if (!next && lines[at].trim() && !/^\s/.test(lines[at])) break;
      body.push(lines[at].slice(Math.min(indent.length + 2, lines[at].search(/\S|$/))));
    }
    const inner = markdown(body.join("\n"), depth + 1);
    node.append(el("li", {}, ...(inner[0]?.tagName === "P" ? [...inner[0].childNodes, ...inner.slice(1)] : inner)));
    while (at < lines.length && !lines[at].trim() && ITEM.test(lines[at + 1] ?? "")) at += 1;
  }
  return [at, node];
}

const kindOf = (line) => (/^(---|\+\+\+|@@|#)/.test(line) ? "at" : line[0] === "+" ? "add" : line[0] === "-" ? "del" : "same");

/** The beginning of a long line, and a button for its rest. */
function shortLine(line) {
  if (line.length <= LONGEST_LINE) return [line];
  const more = el("button", { type: "button", class: "more" }, `${line.length - LONGEST_LINE} more characters`);
  more.addEventListener("click", () => more.replaceWith(clean(line.slice(LONGEST_LINE))));
  return [line.slice(0, LONGEST_LINE), more];
}

/** A unified diff; a long one is shown in part, and whole on demand. */
export function diff(text) {
  const lines = text.replace(/\n$/, "").split("\n");
  const rows = (part) => part.map((line) => el("span", { class: kindOf(line) }, ...shortLine(line || " ")));
  const node = el("pre", { class: "diff", tabindex: "0" }, rows(lines.slice(0, MOST_LINES)));
  if (lines.length > MOST_LINES) {
    const more = el("button", { type: "button", class: "more" }, `Show ${lines.length - MOST_LINES} more lines`);
    more.addEventListener("click", () => { more.remove(); add(node, rows(lines.slice(MOST_LINES))); });
    node.append(more);
  }
  return node;
}

const STABLE = /\n\n(?=[^\s\-*+>|\d])/g;

/** An answer that grows: blocks that are complete are drawn once, only the last one again and again. */
export class GrowingAnswer {
  constructor(node) {
    this.node = node;
    this.text = "";
    this.drawn = 0;
    this.tail = [];
  }

  draw() {
    const rest = this.text.slice(this.drawn);
    let stable = 0;
    for (const found of rest.matchAll(STABLE)) {
      if ((rest.slice(0, found.index).match(/^ {0,3}(`{3,}|~{3,})/gm) ?? []).length % 2 === 0) stable = found.index + 2;
    }
    for (const node of this.tail) node.remove();
    if (stable) add(this.node, markdown(rest.slice(0, stable)));
    this.tail = markdown(rest.slice(stable));
    add(this.node, this.tail);
    this.drawn += stable;
  }
}
