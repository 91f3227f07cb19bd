import type { Frame } from './frames.js';
import { BrokenOff, Problem, Unreachable } from './problem.js';
import { Resumed } from './resumed.js';
import type { Properties, StreamEvent } from './types.js';

interface StreamMessage {
  type?: 'Feature';
  position?: string;
  end?: string;
  reason?: string;
  detail?: string;
  after?: string;
  missing?: string;
}

/** Events of a collection as they are written, without a loss or a repetition. Made by `Collection.stream`. */
export class EventStream<P = Properties> extends Resumed<StreamEvent<P>> {
  /** Connects. Without a position of its own the stream takes the server's: from here on nothing is missed. */
  async open(): Promise<this> {
    try {
      await this.connect();
      while (this.position === undefined) {
        const frame = await this.frame();
        if (!frame) throw new Unreachable(`${this.http.url}: the stream ended before it began`);
        this.take(frame);
      }
    } catch (error) {
      this.close();
      throw error;
    }
    return this;
  }

  protected override take(frame: Frame): StreamEvent<P> | undefined {
    const said = document<StreamMessage>(frame);
    if (said.type === 'Feature') {
      this.position = said.position;
      return said as StreamEvent<P>;
    }
    // Server-Sent Events have a name for what is no event of the collection, WebSockets a member.
    const reason = frame.event === 'end' ? said.reason : said.end;
    if (reason !== undefined) {
      this.position = said.after ?? this.position;
      this.disconnect();
      if (reason === 'gone')
        throw new Problem({ type: 'urn:meridian:problem:gone', title: 'Gone', status: 410, detail: said.detail ?? 'the collection was removed' });
      return undefined;
    }
    const missing = frame.event === 'missing' ? (said.detail ?? frame.data) : said.missing;
    if (missing !== undefined) (this.http.options.warn ?? console.warn)(missing);
    else this.position = frame.id ?? said.position ?? this.position;
    return undefined;
  }
}

/** The JSON object of a message; an empty one where the message has no data. */
export function document<T extends object>(frame: Frame): Partial<T> {
  if (!frame.data) return {};
  try {
    const found: unknown = JSON.parse(frame.data);
    if (typeof found === 'object' && found !== null) return found;
  } catch {
    // The error below is the same.
  }
  throw new BrokenOff(`a message is not a JSON object: ${frame.data.slice(0, 80)}`);
}
