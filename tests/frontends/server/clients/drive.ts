// Drives a session with the types that openapi-typescript has made; prints what it saw as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./api";

declare const process: { argv: string[] };
type Event = components["schemas"]["Event"];

const [origin, token] = process.argv.slice(2) as [string, string];
const headers = { Authorization: `Bearer ${token}` };
const client = createClient<paths>({ baseUrl: origin, headers });

async function* events(id: string): AsyncGenerator<Event> {
  const response = await fetch(`${origin}/v1/sessions/${id}/events`, { headers });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { done, value } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop()!;
    for (const line of blocks.flatMap((block) => block.split("\n"))) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
  }
}

const made = await client.POST("/v1/sessions", { body: { mode: "ask" } });
if (!made.data) throw new Error(made.error.error.message);
const path = { params: { path: { id: made.data.id } } };
const saved = await client.POST("/v1/sessions/{id}/prompt", { ...path, body: { text: "create it" } });
let streamed = "", result = "", changed: string[] = [];
if (saved.data) for await (const event of events(made.data.id)) {
  if (event.type === "system" && event.subtype === "approval") {
    await client.POST("/v1/sessions/{id}/approve", { ...path, body: { call_id: event.call_id, decision: event.decisions[0]! } });
  } else if (event.type === "stream_event" && event.event.type === "text_delta") {
    streamed += event.event.text;
  } else if (event.type === "result") {
    [result, changed] = [event.result, event.files_changed ?? []];
    break;
  }
}
const loaded = await client.GET("/v1/sessions/{id}", path);
const answers = (loaded.data?.messages ?? []).flatMap((each) => (each.type === "assistant" ? [each.message.content[0]!.type] : []));
const refused = await client.GET("/v1/sessions/{id}", { params: { path: { id: "nobody" } } });
const names = await client.GET("/v1/find", { params: { query: { q: "made", session: made.data.id } } });
await client.DELETE("/v1/sessions/{id}", path);
const rest = await client.GET("/v1/sessions");
console.log(JSON.stringify({ result, changed, answers, streamed, refused: refused.error?.error.status, names: names.data?.matches, rest: rest.data }));
