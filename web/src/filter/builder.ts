// Conditions to pick: a field, how it compares, and a value, which is completed from the values that there are.
import type * as api from '../api';
import type { App } from '../app';
import { $, make } from '../dom';
import { formatCount, formatMark } from '../numbers';
import { anywhere } from '../query';
import { conditionsOf, conditionText, filterText, OPERATOR_NAMES, operatorsOf, takesValue, type Condition, type Operator } from './conditions';

/** Values that are offered. */
const OFFERED = 12;
/** Wait for more typing, in milliseconds. */
const PAUSE = 200;

export class Builder {
  private conditions: Condition[] = [];
  private readonly list = $('conditions');
  private asking: AbortController | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly app: App,
    /** Called with the CQL2 text whenever it changes; `done` where it is to be applied. */
    private readonly changed: (text: string, done: boolean) => void,
  ) {}

  private fields(): readonly api.Field[] {
    return this.app.open()?.schema.fields ?? [];
  }

  /** Shows the conditions of a text; says so where it has others. */
  read(text: string): void {
    const fields = this.fields();
    const found = fields.length ? conditionsOf(text, fields) : [];
    $('by-hand').hidden = found !== null;
    $<HTMLButtonElement>('add-condition').disabled = found === null;
    // What is being picked stays as it is: its text is not complete yet.
    if (found && filterText(this.conditions, fields) === text.trim() && text.trim()) return;
    this.conditions = found ?? [];
    this.draw();
  }

  add(): void {
    const [first] = this.fields().filter(({ name }) => name === this.app.view().field).concat(this.fields());
    if (!first) return;
    this.conditions.push({ field: first.name, operator: operatorsOf(first.kind)[0], value: '' });
    this.draw();
    this.list.querySelector<HTMLSelectElement>('li:last-child select')?.focus();
  }

  private set(index: number, change: Partial<Condition>, done: boolean): void {
    this.conditions[index] = { ...this.conditions[index], ...change };
    this.changed(filterText(this.conditions, this.fields()), done);
  }

  private draw(): void {
    this.list.replaceChildren(...this.conditions.map((condition, i) => this.row(condition, i)));
    this.list.hidden = !this.conditions.length;
  }

  private row({ field, operator, value }: Condition, index: number): HTMLElement {
    const fields = this.fields();
    const kind = fields.find(({ name }) => name === field)?.kind ?? 'text';
    const row = make('li');
    const names = make('select', '', '', { 'aria-label': `Field of condition ${index + 1}` });
    names.append(...fields.map(({ name, title }) => make('option', '', title, { value: name })));
    names.value = field;
    names.addEventListener('change', () => {
      const next = fields.find(({ name }) => name === names.value)?.kind ?? 'text';
      const allowed = operatorsOf(next);
      this.set(index, { field: names.value, value: '', operator: allowed.includes(operator) ? operator : allowed[0] }, false);
      this.draw();
    });
    const ways = make('select', '', '', { 'aria-label': `Comparison of condition ${index + 1}` });
    ways.append(...operatorsOf(kind).map((one) => make('option', '', OPERATOR_NAMES[one], { value: one })));
    ways.value = operator;
    ways.addEventListener('change', () => {
      const next = ways.value as Operator;
      this.set(index, { operator: next, ...(takesValue(next) ? {} : { value: '' }) }, true);
      this.draw();
    });
    row.append(names, ways);
    if (takesValue(operator)) row.append(...this.value(index, field, kind, value));
    const remove = make('button', 'small quiet', '×', { type: 'button', 'aria-label': `Remove condition ${index + 1}` });
    remove.addEventListener('click', () => {
      this.conditions.splice(index, 1);
      this.draw();
      this.changed(filterText(this.conditions, fields), true);
      $('add-condition').focus();
    });
    row.append(remove);
    return row;
  }

  private value(index: number, field: string, kind: api.FieldKind, value: string): HTMLElement[] {
    const label = `Value of condition ${index + 1}`;
    if (kind === 'bool') {
      const select = make('select', '', '', { 'aria-label': label });
      select.append(...['', 'true', 'false'].map((one) => make('option', '', one || 'choose', { value: one })));
      select.value = value;
      select.addEventListener('change', () => this.set(index, { value: select.value }, true));
      return [select];
    }
    const numeric = kind === 'int' || kind === 'float';
    const offers = make('datalist', '', '', { id: `values-${index}` });
    const input = make('input', '', '', { type: 'text', 'aria-label': label, autocomplete: 'off', list: offers.id, placeholder: kind === 'time' ? '2026-01-31' : 'value' });
    if (numeric) input.inputMode = 'decimal';
    input.value = value;
    input.addEventListener('input', () => {
      this.set(index, { value: input.value }, false);
      if (!numeric && kind !== 'time') this.offer(field, kind, input.value, offers);
    });
    // A choice from the list ends in a change, as typing does.
    input.addEventListener('change', () => this.set(index, { value: input.value }, true));
    input.addEventListener('focus', () => {
      if (kind === 'time') return;
      if (numeric) this.range(field, input);
      else this.offer(field, kind, input.value, offers);
    }, { once: true });
    return [input, offers];
  }

  /** Asks for the most frequent values that hold what is typed, among the events of the other conditions' collection. */
  private offer(field: string, kind: api.FieldKind, typed: string, into: HTMLElement): void {
    const open = this.app.open();
    if (!open || kind !== 'text') return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.asking?.abort();
      const asking = (this.asking = new AbortController());
      const filter = typed ? conditionText({ field, operator: 'contains', value: typed }, 'text') : '';
      const name = `top(${field},${OFFERED})`;
      open.source.aggregate([name], anywhere(filter), asking.signal).then(
        ([group]) => {
          const found = (group?.[name] ?? []) as { value: unknown; count: number }[];
          into.replaceChildren(...found.map(({ value, count }) => make('option', '', formatCount(count), { value: String(value) })));
        },
        () => {
          // Without offers a value can still be typed.
        },
      );
    }, PAUSE);
  }

  /** Says between what the values of a numeric field lie. */
  private range(field: string, input: HTMLInputElement): void {
    const open = this.app.open();
    if (!open) return;
    const [low, high] = [`min(${field})`, `max(${field})`];
    open.source.aggregate([low, high], anywhere(), new AbortController().signal).then(
      ([group]) => {
        if (typeof group?.[low] === 'number') input.placeholder = `${formatMark(group[low])} to ${formatMark(group[high] as number)}`;
      },
      () => {},
    );
  }
}
