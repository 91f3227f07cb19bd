import type { components } from './contract.js';

/** Problem details (RFC 9457) as the server sends them. */
export type Details = components['schemas']['Problem'];

/** One mistake of a body: the line, the field, and what was expected. */
export type Mistake = components['schemas']['Mistake'];

/** Characters of a text in place of problem details. */
const TEXT_MAX = 200;

/** The server refused a request, or failed to answer it. */
export class Problem extends Error {
  override readonly name = 'Problem';
  /** Status of HTTP. */
  readonly status: number;
  /** URI of the kind of problem. */
  readonly type: string;
  /** The end of `type`, such as `invalid-parameter`; docs/formats.md lists them. */
  readonly kind: string;
  /** The kind in words. */
  readonly title: string;
  /** The error, and what was expected. */
  readonly detail: string;
  /** The parameter or property at fault. */
  readonly field: string | undefined;
  /**
   * The line of a body, or the row of Arrow, at fault; of `append`, the ordinal of the event among all. Of GeoJSON,
   * `details.feature` is the ordinal of the event.
   */
  readonly line: number | undefined;
  /** All mistakes of a body, at most 100. */
  readonly errors: readonly Mistake[];
  /** All members, such as `removes` (409) or `first` (410). */
  readonly details: Details;
  /** The id of the request, which the log of the server has. */
  readonly requestId: string | undefined;

  constructor(details: Details, requestId?: string) {
    const { status, type, title, detail, field, line } = details;
    // The sentence of a body's mistake begins with its line and field.
    const at = field && !detail.includes(field) ? `${field}: ` : '';
    super(`${status} ${title}: ${at}${detail}`);
    this.status = status;
    this.type = type;
    this.kind = type.slice(type.lastIndexOf(':') + 1);
    this.title = title;
    this.detail = detail;
    this.field = field;
    this.line = line;
    this.errors = details.errors ?? [];
    this.details = details;
    this.requestId = requestId;
  }
}

/** No answer: the server is not there, was silent for too long, or a WebSocket was refused. `cause` has the reason. */
export class Unreachable extends Error {
  override readonly name = 'Unreachable';
}

/** An answer ended before it was complete. What came of it until then is not all. */
export class BrokenOff extends Error {
  override readonly name = 'BrokenOff';
}

/** The problem of a part of a body behind `before` events: its numbers count over all of them. */
export function behind(before: number, { details, detail, requestId }: Problem): Problem {
  const moved = <T extends { line?: number; feature?: number }>(at: T): T => ({
    ...at,
    ...(at.line !== undefined && { line: at.line + before }),
    ...(at.feature !== undefined && { feature: at.feature + before }),
  });
  // The sentence repeats the number of the first mistake, and means the part.
  const sentence = detail
    .replace(/\b(line|feature) (\d+):/, (all, unit: 'line' | 'feature', n: string) => (Number(n) === details[unit] ? `${unit} ${Number(n) + before}:` : all))
    .replace('nothing was written', 'nothing of this part was written');
  const errors = details.errors && { errors: details.errors.map(moved) };
  return new Problem({ ...moved(details), detail: sentence, ...errors }, requestId);
}

/** The problem of a response whose status is not 2xx. */
export async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text().catch(() => '');
  const requestId = response.headers.get('x-request-id') ?? undefined;
  let found: Partial<Details> = {};
  try {
    const body: unknown = JSON.parse(text);
    if (typeof body === 'object' && body !== null) found = body;
  } catch {
    // A proxy in between may answer in its own words; so does a port that speaks TLS.
  }
  const plain = /^text\/plain\b/i.test(response.headers.get('content-type') ?? '') ? text.trimStart().split(/[\r\n]/, 1)[0]?.slice(0, TEXT_MAX) : '';
  return new Problem(
    {
      ...found,
      type: found.type ?? 'about:blank',
      title: found.title ?? (response.statusText || 'Refused'),
      status: response.status,
      detail: found.detail ?? (plain || 'the answer is no problem details of RFC 9457'),
    },
    requestId,
  );
}
