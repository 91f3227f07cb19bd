// The table of events: rows as far as they are in sight, between two spacers as tall as the others.
import type { Feature } from 'geojson';
import type { Schema } from '../api';
import { $, make } from '../dom';
import { formatCount } from '../numbers';
import { cellText, turned, type Column } from './columns';
import { idOf } from '../results';
import type { Rows } from './rows';

/** Height of a row in pixels, as map.css has it. */
export const ROW = 29;
/** Rows drawn above and below what is in sight. */
const SPARE = 12;
/** Taller elements are cut off by browsers: from here on, a pixel of the scroll bar is more than one row's pixel. */
const TALL = 15_000_000;

export interface TableEvents {
  /** A row was clicked. */
  clicked(feature: Feature): void;
  sorted(sort: string): void;
}

export class EventTable {
  private readonly room = $('table-scroll');
  private readonly table = $<HTMLTableElement>('table');
  private rows: Rows | null = null;
  private columns: readonly Column[] = [];
  private order = '';
  private chosen = '';
  /** Row that the keyboard is on. */
  private at = 0;
  private first = -1;

  constructor(private readonly events: TableEvents) {
    this.room.addEventListener('scroll', () => this.draw());
    new ResizeObserver(() => this.draw()).observe(this.room);
    this.table.addEventListener('keydown', (e) => this.key(e));
  }

  /** Shows rows from their first one on. Null empties the table. `order` names an order that no column gives: then none can be chosen. */
  show(rows: Rows | null, columns: readonly Column[], sort: string, order = ''): void {
    const same = columns.map(({ name }) => name).join() === this.columns.map(({ name }) => name).join();
    this.rows = rows;
    this.columns = columns;
    this.order = order;
    this.at = 0;
    this.first = -1;
    this.room.scrollTop = 0;
    if (!rows) return this.table.replaceChildren();
    const head = make('tr');
    for (const column of columns) head.append(this.heading(column, sort));
    head.append(make('th', '', 'id', { scope: 'col' }));
    const header = make('thead');
    header.append(head);
    const widths = same ? this.table.querySelector('colgroup') : null;
    if (!widths) this.freeze(null);
    this.table.replaceChildren(...(widths ? [widths] : []), header, make('tbody'));
    this.draw();
  }

  private heading(column: Column, sort: string): HTMLElement {
    const way = sort === column.name ? 'ascending' : sort === `-${column.name}` ? 'descending' : 'none';
    const cell = make('th', column.numeric ? 'number' : '', '', { scope: 'col', 'aria-sort': way });
    if (this.order || !column.sortable) {
      cell.textContent = column.title;
      cell.removeAttribute('aria-sort');
      return cell;
    }
    const button = make('button', 'sort', column.title, { type: 'button', 'data-sort': column.name, title: `Sort by ${column.title}` });
    button.append(make('i', '', way === 'none' ? '' : way === 'ascending' ? '↑' : '↓', { 'aria-hidden': 'true' }));
    // All of the cell sorts; the button is for the keyboard.
    cell.addEventListener('click', () => this.events.sorted(turned(sort, column)));
    cell.append(button);
    return cell;
  }

  /** New rows have come. */
  refresh(): void {
    this.first = -1;
    this.draw();
  }

  /** How many pixels of rows a pixel of the scroll bar is. */
  private get scale(): number {
    const all = (this.rows?.total ?? 0) * ROW;
    const view = this.room.clientHeight;
    return all > TALL ? (all - view) / (TALL - view) : 1;
  }

  /** The first row in sight. */
  get top(): number {
    return Math.floor((this.room.scrollTop * this.scale) / ROW);
  }

  private draw(): void {
    const { rows, room } = this;
    const body = this.table.tBodies[0];
    if (!rows || !body) return;
    const { total } = rows;
    const sight = Math.ceil(room.clientHeight / ROW) || 1;
    const first = Math.max(0, Math.min(this.top, total - 1) - SPARE);
    const last = Math.min(total, this.top + sight + SPARE);
    rows.want(first, last);
    this.sayRange(sight);
    if (first === this.first && this.scale === 1 && body.childElementCount === last - first + 2) return;
    this.first = first;
    const height = Math.min(TALL, total * ROW);
    const above = this.scale === 1 ? first * ROW : Math.max(0, room.scrollTop - (this.top - first) * ROW);
    const focused = this.table.contains(document.activeElement) && document.activeElement?.matches('tbody tr');
    body.replaceChildren(
      this.space(above),
      ...Array.from({ length: last - first }, (_, i) => this.row(first + i, rows.row(first + i))),
      this.space(Math.max(0, height - above - (last - first) * ROW)),
    );
    this.table.setAttribute('aria-rowcount', String(total + 1));
    if (focused) this.rowAt(this.at)?.focus({ preventScroll: true });
    if (!this.table.querySelector('colgroup') && rows.row(first)) this.freeze(Array.from(this.table.tHead?.rows[0].cells ?? [], (cell) => Math.ceil(cell.getBoundingClientRect().width)));
    else this.widen();
  }

  /** Gives columns of numbers the room that their longest number in sight needs: a number that is cut is another number. */
  private widen(): void {
    const cols = [...this.table.querySelectorAll('col')];
    const lacks = cols.map(() => 0);
    for (const cell of this.table.querySelectorAll<HTMLTableCellElement>('tbody td.number')) lacks[cell.cellIndex] = Math.max(lacks[cell.cellIndex], cell.scrollWidth - cell.clientWidth);
    if (lacks.some((lack) => lack > 0)) this.freeze(cols.map((col, i) => parseFloat(col.style.width) + lacks[i]));
  }

  /** Keeps the widths of columns, so that they do not change while rows come and go. */
  private freeze(widths: readonly number[] | null): void {
    this.table.style.tableLayout = widths ? 'fixed' : '';
    this.table.style.width = widths ? `${widths.reduce((a, b) => a + b, 0)}px` : '';
    this.table.querySelector('colgroup')?.remove();
    if (!widths) return;
    const group = make('colgroup');
    for (const width of widths) {
      const one = make('col');
      one.style.width = `${width}px`;
      group.append(one);
    }
    this.table.prepend(group);
  }

  private space(height: number): HTMLElement {
    const row = make('tr', 'space', '', { 'aria-hidden': 'true' });
    const cell = make('td', '', '', { colspan: String(this.columns.length + 1) });
    cell.style.height = `${height}px`;
    row.append(cell);
    return row;
  }

  private row(index: number, feature: Feature | undefined): HTMLElement {
    const row = make('tr', '', '', { 'aria-rowindex': String(index + 2), 'data-row': String(index), tabindex: index === this.at ? '0' : '-1' });
    if (!feature) {
      row.className = 'waiting-row';
      row.append(make('td', '', '…', { colspan: String(this.columns.length + 1) }));
      return row;
    }
    const id = idOf(feature);
    row.dataset['id'] = id;
    for (const column of this.columns) {
      const text = cellText(feature, column);
      row.append(make('td', column.numeric ? 'number' : column.time ? 'time' : '', text, text.length > 24 ? { title: text } : {}));
    }
    row.append(make('td', 'id', id));
    this.paint(row);
    row.addEventListener('click', () => {
      this.at = index;
      this.events.clicked(feature);
    });
    return row;
  }

  private sayRange(sight: number): void {
    const total = this.rows?.total ?? 0;
    const last = Math.min(total, this.top + Math.max(1, sight - 1));
    const order = this.order && `, ${this.order}`;
    $('rows').textContent = total ? `${formatCount(Math.min(this.top + 1, total))}–${formatCount(last)} of ${formatCount(total)}${order}` : '';
  }

  private rowAt(index: number): HTMLElement | null {
    return this.table.querySelector(`tbody tr[data-row="${index}"]`);
  }

  /** Moves the keyboard to a row, and the row into sight. */
  private go(index: number): void {
    const total = this.rows?.total ?? 0;
    if (!total) return;
    this.at = Math.max(0, Math.min(total - 1, index));
    const head = this.table.tHead?.offsetHeight ?? 0;
    const sight = this.room.clientHeight - head;
    const top = this.top * ROW;
    if (this.at * ROW < top) this.room.scrollTop = (this.at * ROW) / this.scale;
    else if ((this.at + 1) * ROW > top + sight) this.room.scrollTop = Math.ceil(((this.at + 1) * ROW - sight) / this.scale);
    this.first = -1;
    this.draw();
    this.rowAt(this.at)?.focus({ preventScroll: true });
  }

  private key(e: KeyboardEvent): void {
    const row = (e.target as HTMLElement).closest<HTMLElement>('tbody tr[data-row]');
    if (!row) return;
    const index = Number(row.dataset['row']);
    const sight = Math.max(1, Math.floor(this.room.clientHeight / ROW) - 2);
    const to: Record<string, number> = { ArrowDown: index + 1, ArrowUp: index - 1, PageDown: index + sight, PageUp: index - sight, Home: 0, End: (this.rows?.total ?? 1) - 1 };
    if (e.key in to) this.go(to[e.key]);
    else if (e.key === 'Enter' || e.key === ' ') {
      const feature = this.rows?.row(index);
      if (feature) this.events.clicked(feature);
    } else return;
    e.preventDefault();
  }

  private paint(row: HTMLElement): void {
    const is = this.chosen !== '' && row.dataset['id'] === this.chosen;
    row.classList.toggle('chosen', is);
    row.setAttribute('aria-selected', String(is));
  }

  /** Marks the row of an event, if it is in sight. */
  mark(id: string): void {
    this.chosen = id;
    for (const row of this.table.querySelectorAll<HTMLElement>('tbody tr[data-id]')) this.paint(row);
  }
}

/** Columns in the order of the schema that a choice leaves; all without a choice. */
export const chosenColumns = (all: readonly Column[], choice: readonly string[] | null): readonly Column[] => (choice ? all.filter(({ name }) => choice.includes(name)) : all);

/** The shortest property of a schema, for rows that are only walked over. */
export const slimField = ({ fields }: Schema): string => (fields.find(({ kind }) => kind === 'bool' || kind === 'int') ?? fields[0])?.name ?? '';
