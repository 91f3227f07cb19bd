// What the page asks of the server besides the packets.
import { call, get, type Problem } from '../api';
import { body, type Question } from './question';

/** What a source can be asked; absent where it takes anything. */
export interface ProviderCapabilities {
  readonly needs?: readonly string[];
  readonly needs_one_of?: readonly string[];
  readonly not?: readonly string[];
  readonly keywords?: 'none' | 'all' | 'boolean';
}

/** Somebody who can be asked. */
export interface Provider {
  readonly name: string;
  readonly title: string;
  readonly ready: boolean;
  /** Why it is not ready. */
  readonly detail?: string;
  readonly breaker?: 'closed' | 'open' | 'half-open';
  readonly budget?: number;
  readonly spent?: number;
  readonly takes?: ProviderCapabilities;
}

export async function providers(signal: AbortSignal): Promise<Provider[]> {
  return (await get<{ providers?: Provider[] }>('/providers', signal)).providers ?? [];
}

/** What the server says of a search that it took. */
export interface AcceptedSearch {
  readonly search: string;
  readonly providers: Readonly<Record<string, { state: string; detail?: string }>>;
  /** Where an address was found. */
  readonly near?: readonly [lng: number, lat: number];
  readonly radius?: number;
}

const post = (path: string, value: unknown, signal: AbortSignal): Promise<Response> =>
  call(path, signal, { method: 'POST', headers: { 'content-type': 'application/json', accept: 'application/json' }, body: JSON.stringify(value) });

export async function start(question: Question, signal: AbortSignal): Promise<AcceptedSearch> {
  return (await (await post('/searches', body(question), signal)).json()) as AcceptedSearch;
}

/** Stops a search; its last packet follows. One that has gone is as good as stopped. */
export async function stop(id: string): Promise<void> {
  await call(`/searches/${encodeURIComponent(id)}`, new AbortController().signal, { method: 'DELETE' }).catch((error: Problem) => {
    if (error.status !== 404) throw error;
  });
}

/** Whether this server keeps searches: its own description of its routes says so. */
export async function keeps(signal: AbortSignal): Promise<boolean> {
  const { paths } = await get<{ paths?: Record<string, { post?: unknown }> }>('/openapi.json', signal, 'application/vnd.oai.openapi+json;version=3.1, application/json');
  return paths?.['/saved-searches']?.post !== undefined;
}

/** Keeps a search under a name; outside sources are asked again every `poll` seconds, or not at all. The address of what is kept. */
export async function save(name: string, question: Question, poll: number | null, signal: AbortSignal): Promise<string> {
  // How long a single search may take says nothing about one that stands.
  const { timeout: _, ...standing } = body(question);
  const response = await post('/saved-searches', { name, question: standing, ...(poll ? { poll_s: poll } : {}) }, signal);
  const { id } = (await response.json()) as { id: string };
  return `/saved-searches/${encodeURIComponent(id)}`;
}
