// Requests to the server, and what the page says about the connection.
/* global serverToken */
const banner = document.getElementById("banner");
const EXPIRED = serverToken ? "The server was started again and has another token. Open the address that `wolo serve` prints now."
  : "This tab has no token. Open the address that `wolo serve` printed.";

export class Refused extends Error {
  constructor(status, error) {
    super([error.message, error.hint].filter(Boolean).join(" "));
    this.status = status;
  }
}

/** Shows a line above the conversation until it is called without words. */
export function banners(words = "", retries = false) {
  if (banner.firstChild.textContent !== words) banner.firstChild.textContent = words;
  banner.hidden = !words;
  banner.lastElementChild.hidden = !retries;
}

export async function open(method, path, { body, headers = {}, signal } = {}) {
  const given = { Authorization: `Bearer ${serverToken}`, ...(body ? { "Content-Type": "application/json" } : {}), ...headers };
  const response = await fetch(path, { method, headers: given, body: body && JSON.stringify(body), signal });
  if (response.ok) return response;
  if (response.status === 401) banners(EXPIRED);
  const error = (await response.json().catch(() => ({}))).error ?? { message: `The server answered ${response.status}.`, hint: "" };
  throw new Refused(response.status, response.status === 401 ? { message: EXPIRED } : error);
}

export async function json(method, path, body) {
  try {
    return await (await open(method, path, { body })).json();
  } catch (error) {
    throw error instanceof TypeError ? new Error("The server cannot be reached.") : error;
  }
}

export const at = (session, path = "") => `/v1/sessions/${encodeURIComponent(session)}${path && `/${path}`}`;

const wakers = new Set();
const wake = () => { for (const each of wakers) each(); };
banner.lastElementChild.addEventListener("click", wake);
addEventListener("online", wake);
document.addEventListener("visibilitychange", () => { if (!document.hidden) wake(); });

/** Waits; ends early when the network comes back, the page is shown again, or “Try now” is pressed. */
export function pause(ms) {
  return new Promise((done) => {
    const end = () => { clearTimeout(timer); wakers.delete(end); done(); };
    const timer = setTimeout(end, ms);
    wakers.add(end);
  });
}
