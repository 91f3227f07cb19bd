// Conditions of a filter, evaluated over events in the browser as the server evaluates them (crates/model/src/filter).
import type { Feature } from 'geojson';
import type { Field, FieldKind } from '../api';
import { conditionsOf, type Condition, type Operator } from '../filter/conditions';
import { isTime } from './times';

const DAY = 86_400_000;
const ISO = /^(\d{4}-\d\d-\d\d)(?:[Tt ](\d\d)(?::?(\d\d)(?::?(\d\d)(?:[.,](\d{1,9}))?)?)?(?:[Zz]|([+-]\d\d)(?::?(\d\d))?)?)?$/;

/** Milliseconds since 1970, with the fraction that the text has: browsers read few of the forms that a file may have. NaN for no time. */
export function instantOf(text: unknown): number {
  const [, day, hour = '00', minute = '00', second = '00', fraction = '0', zone = '+00', minutes = '00'] = (typeof text === 'string' && ISO.exec(text)) || [];
  return day === undefined ? NaN : Date.parse(`${day}T${hour}:${minute}:${second}${zone}:${minutes}`) + Number(`0.${fraction.slice(0, 6)}`) * 1000;
}

/** Without regard to case and composition, as crates/model/src/caseless.rs has it: full case folding, in which the dotless ı is no i. */
export function fold(text: string): string {
  const signs = Array.from(text.normalize('NFD'), (sign) => (sign === 'ı' ? sign : sign.toLowerCase().toUpperCase().toLowerCase()));
  return signs.join('').normalize('NFC');
}

type Test = (value: unknown) => boolean;

/** Compares with a span of values, which is one value unless it is a day: `<=` holds for all that is not after it. */
function compares(operator: Operator, first: number, last: number): ((value: number) => boolean) | null {
  switch (operator) {
    case '=':
      return (value) => value >= first && value <= last;
    case '<>':
      return (value) => value < first || value > last;
    case '<':
      return (value) => value < first;
    case '<=':
      return (value) => value <= last;
    case '>':
      return (value) => value > last;
    case '>=':
      return (value) => value >= first;
    default:
      return null;
  }
}

/** The test of a value that is there. Throws where the condition's value is not of the field's kind. */
function valueTest({ field, operator, value }: Condition, kind: FieldKind): Test {
  const wrong = (expected: string): Error => new Error(`${field}: '${value}' where ${expected} was expected`);
  if (kind === 'int' || kind === 'float' || kind === 'time') {
    const first = kind === 'time' ? (isTime(value) ? instantOf(value) : NaN) : value.trim() ? Number(value) : NaN;
    if (!Number.isFinite(first)) throw wrong(kind === 'time' ? 'a time such as 2026-01-31 or 2026-01-31T12:00:00Z' : 'a number');
    // A date is all instants of its day, to the microsecond.
    const holds = compares(operator, first, kind === 'time' && value.length === 10 ? first + DAY - 0.001 : first);
    if (holds) return kind === 'time' ? (one) => holds(instantOf(one)) : (one) => holds(one as number);
  } else if (kind === 'bool') {
    if (!/^(true|false)$/i.test(value)) throw wrong('true or false');
    return (one) => String(one) === value.toLowerCase();
  } else if (kind === 'list') {
    return (one) => Array.isArray(one) && one.includes(value);
  }
  if (operator === '=') return (one) => one === value;
  if (operator === '<>') return (one) => one !== value;
  const folded = fold(value);
  return operator === 'starts' ? (one) => fold(String(one)).startsWith(folded) : (one) => fold(String(one)).includes(folded);
}

/** Whether an event matches a filter. Throws, in a sentence, for a filter that cannot be evaluated here. */
export function testOf(filter: string, fields: readonly Field[]): (event: Feature) => boolean {
  const conditions = conditionsOf(filter, fields);
  if (!conditions) throw new Error('A file takes conditions on its fields that are joined by AND, as Add condition makes them. Loaded, it takes all of CQL2');
  const tests = conditions.map((condition): ((event: Feature) => boolean) => {
    const { field, operator } = condition;
    const lacks = (event: Feature): boolean => (event.properties?.[field] ?? null) === null;
    if (operator === 'null') return lacks;
    if (operator === 'some') return (event) => !lacks(event);
    const test = valueTest(condition, fields.find(({ name }) => name === field)?.kind ?? 'text');
    // Without a value no comparison holds, `<>` neither.
    return (event) => !lacks(event) && test(event.properties?.[field]);
  });
  return (event) => tests.every((test) => test(event));
}
