// What is known of the collections on the map: schemas, and the most frequent values of the texts that colour them.
import * as api from '../api';
import type { ValueCount } from '../legend';

/** Values of a text that have a colour of their own. */
export const VALUES_MAX = 8;

export const topOf = (field: string): string => `top(${field},${VALUES_MAX})`;

/** The values of a group of an aggregate, as texts. */
export function valuesOf(group: Record<string, unknown> | undefined, field: string): ValueCount[] {
  const list = (group?.[topOf(field)] ?? []) as { value: unknown; count: number }[];
  return list.map(({ value, count }) => ({ value: String(value), count }));
}

/** How a field colours: by its number, by its values, or not at all. */
export function kindOf(schema: api.Schema | undefined, name: string): 'number' | 'value' | null {
  const kind = schema?.fields.find((field) => field.name === name)?.kind;
  if (kind === 'int' || kind === 'float') return 'number';
  return kind === 'text' || kind === 'bool' ? 'value' : null;
}

export class SchemaCache {
  private readonly schemas = new Map<string, api.Schema | null>();
  private readonly values = new Map<string, readonly ValueCount[] | null>();

  constructor(
    /** Something is known that was not. */
    private readonly changed: () => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  private once<T>(kept: Map<string, T | null>, key: string, load: (signal: AbortSignal) => Promise<T>): T | undefined {
    const found = kept.get(key);
    if (found === undefined) {
      kept.set(key, null);
      load(new AbortController().signal).then(
        (value) => {
          kept.set(key, value);
          this.changed();
        },
        (error: unknown) => this.failed(error),
      );
    }
    return found ?? undefined;
  }

  /** The schema of a collection; undefined until it is loaded. */
  schema(collection: string): api.Schema | undefined {
    return this.once(this.schemas, collection, (signal) => api.schema(collection, signal));
  }

  put(collection: string, schema: api.Schema): void {
    this.schemas.set(collection, schema);
  }

  /** The most frequent values of a text among all events of a collection: a value keeps its colour whatever is asked. */
  top(collection: string, field: string): readonly ValueCount[] | undefined {
    return this.once(this.values, `${collection} ${field}`, async (signal) => {
      const [group] = await api.aggregate(collection, [topOf(field)], new URLSearchParams(), signal);
      return valuesOf(group, field);
    });
  }
}
