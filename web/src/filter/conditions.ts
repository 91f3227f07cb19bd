// Conditions that a person picks, as CQL2 text and back. Text that is not made of such conditions stays text.
import type { Field, FieldKind } from '../api';
import { cqlName } from '../query';

export type Operator = '=' | '<>' | '<' | '<=' | '>' | '>=' | 'contains' | 'starts' | 'null' | 'some';

export interface Condition {
  readonly field: string;
  readonly operator: Operator;
  /** As typed; empty for an operator without a value. */
  readonly value: string;
}

export const OPERATOR_NAMES: Record<Operator, string> = {
  '=': 'is',
  '<>': 'is not',
  '<': 'is less than',
  '<=': 'is at most',
  '>': 'is more than',
  '>=': 'is at least',
  contains: 'contains',
  starts: 'begins with',
  null: 'has no value',
  some: 'has a value',
};

/** Operators that a kind of field takes. */
export function operatorsOf(kind: FieldKind): readonly Operator[] {
  if (kind === 'int' || kind === 'float' || kind === 'time') return ['=', '<>', '<', '<=', '>', '>=', 'null', 'some'];
  if (kind === 'bool') return ['=', 'null', 'some'];
  if (kind === 'list') return ['contains', 'null', 'some'];
  return ['=', '<>', 'contains', 'starts', 'null', 'some'];
}

export const takesValue = (operator: Operator): boolean => operator !== 'null' && operator !== 'some';

const quoted = (text: string): string => `'${text.replaceAll("'", "''")}'`;
/** A text in a pattern, where % and _ stand for themselves. */
const literal = (text: string): string => text.replace(/[\\%_]/g, (c) => `\\${c}`);

/** A value as CQL2 writes it. */
function valueText(value: string, kind: FieldKind): string {
  if (kind === 'int' || kind === 'float') return Number.isFinite(Number(value)) && value.trim() ? value.trim() : quoted(value);
  if (kind === 'bool') return /^true$/i.test(value) ? 'TRUE' : 'FALSE';
  if (kind === 'time') return value.length === 10 ? `DATE('${value}')` : `TIMESTAMP(${quoted(value)})`;
  return quoted(value);
}

/** The CQL2 text of a condition; empty while it lacks a value. */
export function conditionText({ field, operator, value }: Condition, kind: FieldKind): string {
  const name = cqlName(field);
  if (operator === 'null') return `${name} IS NULL`;
  if (operator === 'some') return `${name} IS NOT NULL`;
  if (value === '') return '';
  if (operator === 'contains' && kind === 'list') return `A_CONTAINS(${name}, (${quoted(value)}))`;
  if (operator === 'contains') return `CASEI(${name}) LIKE CASEI(${quoted(`%${literal(value)}%`)})`;
  if (operator === 'starts') return `CASEI(${name}) LIKE CASEI(${quoted(`${literal(value)}%`)})`;
  return `${name} ${operator} ${valueText(value, kind)}`;
}

/** The CQL2 text of conditions that all hold. */
export function filterText(conditions: readonly Condition[], fields: readonly Field[]): string {
  return conditions
    .map((condition) => conditionText(condition, fields.find(({ name }) => name === condition.field)?.kind ?? 'text'))
    .filter(Boolean)
    .join(' AND ');
}

const NAME = /(?:"((?:[^"]|"")+)"|([A-Za-z_][A-Za-z0-9_]*))/y;
const TEXT = /'((?:[^']|'')*)'/y;

/** Reads CQL2 text from left to right. */
class Reader {
  at = 0;
  constructor(private readonly text: string) {}

  take(pattern: RegExp): RegExpExecArray | null {
    const sticky = new RegExp(pattern.source, 'iy');
    while (/\s/.test(this.text[this.at] ?? '')) this.at++;
    sticky.lastIndex = this.at;
    const found = sticky.exec(this.text);
    if (found) this.at = sticky.lastIndex;
    return found;
  }

  get ended(): boolean {
    return this.text.slice(this.at).trim() === '';
  }
}

const nameOf = (found: RegExpExecArray): string => found[1]?.replaceAll('""', '"') ?? found[2];
const textOf = (found: RegExpExecArray): string => found[1].replaceAll("''", "'");

function readCondition(reader: Reader): Condition | null {
  if (reader.take(/A_CONTAINS\(/)) {
    const [field, value] = [reader.take(NAME), reader.take(/,/) && reader.take(/\(/) && reader.take(TEXT)];
    return field && value && reader.take(/\)\s*\)/) ? { field: nameOf(field), operator: 'contains', value: textOf(value) } : null;
  }
  if (reader.take(/CASEI\(/)) {
    const field = reader.take(NAME);
    const value = field && reader.take(/\)\s+LIKE\s+CASEI\(/) && reader.take(TEXT);
    const pattern = value && reader.take(/\)/) && textOf(value);
    const inside = pattern && /^(%?)((?:[^\\%_]|\\[\\%_])*)%$/.exec(pattern);
    return field && inside ? { field: nameOf(field), operator: inside[1] ? 'contains' : 'starts', value: inside[2].replace(/\\(.)/g, '$1') } : null;
  }
  const field = reader.take(NAME);
  if (!field) return null;
  const empty = reader.take(/IS\s+(NOT\s+)?NULL\b/);
  if (empty) return { field: nameOf(field), operator: empty[1] ? 'some' : 'null', value: '' };
  const operator = reader.take(/<=|>=|<>|=|<|>/)?.[0] as Operator | undefined;
  if (!operator) return null;
  const dated = reader.take(/(?:DATE|TIMESTAMP)\(/);
  const text = reader.take(TEXT);
  if (dated) return text && reader.take(/\)/) ? { field: nameOf(field), operator, value: textOf(text) } : null;
  if (text) return { field: nameOf(field), operator, value: textOf(text) };
  const plain = reader.take(/[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\b|TRUE\b|FALSE\b/);
  return plain ? { field: nameOf(field), operator, value: /^[tf]/i.test(plain[0]) ? plain[0].toLowerCase() : plain[0] } : null;
}

/** The conditions of a text; null if it says more than conditions of these fields that all hold. */
export function conditionsOf(text: string, fields: readonly Field[]): Condition[] | null {
  const reader = new Reader(text);
  const out: Condition[] = [];
  if (reader.ended) return out;
  do {
    const condition = readCondition(reader);
    const kind = condition && fields.find(({ name }) => name === condition.field)?.kind;
    if (!condition || !kind || !operatorsOf(kind).includes(condition.operator)) return null;
    out.push(condition);
  } while (reader.take(/AND\b/));
  return reader.ended ? out : null;
}

/** The filter with one more condition: this value of a field, in place of another value of it that was asked for. */
export function withValue(filter: string, field: string, value: string, fields: readonly Field[]): string {
  const condition: Condition = { field, operator: '=', value };
  const found = conditionsOf(filter, fields);
  if (!found) return `(${filter}) AND ${filterText([condition], fields)}`;
  const others = found.filter((one) => one.field !== field || one.operator !== '=');
  // A second click takes it back.
  const same = found.some((one) => one.field === field && one.operator === '=' && one.value === value);
  return filterText(same ? others : [...others, condition], fields);
}
