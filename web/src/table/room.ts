// The table's part of the page: what it asks, its order, and its columns.
import type { Feature } from 'geojson';
import * as api from '../api';
import type { App } from '../app';
import { $, make } from '../dom';
import { columnsOf, sortOf } from './columns';
import { PAGE, Rows } from './rows';
import { chosenColumns, EventTable, slimField } from './table';

/** What to say where no event matches. A file that is beside the collection on the map is no part of the table. */
export const sayNone = (title: string, files: boolean): string => `No event of ${title} matches. Widen the time, the place or the filter.${files ? ' Files have tables of their own: click their names.' : ''}`;

export class TableRoom {
  private readonly table: EventTable;
  private rows: Rows | null = null;

  constructor(
    private readonly app: App,
    clicked: (feature: Feature) => void,
  ) {
    this.table = new EventTable({ clicked, sorted: (sort) => app.update({ sort }) });
    $('columns').addEventListener('click', () => this.choose());
  }

  mark(id: string): void {
    this.table.mark(id);
  }

  clear(): void {
    this.rows?.close();
    this.rows = null;
    this.table.show(null, [], '');
    $('rows').textContent = '';
    $('no-rows').hidden = true;
  }

  /** Shows the rows of the question as it is now. */
  load(): void {
    const open = this.app.open();
    if (!open) return;
    const { source, schema } = open;
    const { app } = this;
    $('table').classList.add('stale');
    $('table-scroll').classList.toggle('waiting', $('table').childElementCount === 0);
    app.work.run('rows', async (signal) => {
      const question = app.question();
      const near = question.where?.kind === 'circle';
      const sort = sortOf(app.view().sort, schema, near);
      const page = (token: string | null, limit: number, slim: boolean, stop: AbortSignal): Promise<api.Page> =>
        source.page(question, { sort, token, limit, slim: slim ? slimField(schema) : '' }, stop);
      const [[{ count } = { count: 0 }], first] = await Promise.all([source.aggregate(['count'], question, signal), page(null, PAGE, false, signal)]);
      let ready: api.Page | null = first;
      this.rows?.close();
      const rows: Rows = new Rows(
        {
          page: (token, limit, slim, stop) => {
            if (token !== null || slim || !ready) return page(token, limit, slim, stop);
            // The first page is there already.
            const given = ready;
            ready = null;
            return Promise.resolve(given);
          },
          changed: () => this.rows === rows && this.refresh(),
          failed: (error) => this.app.failed(error),
          expired: (error) => error instanceof api.Problem && error.status === 410,
        },
        count,
      );
      this.rows = rows;
      $('table-scroll').classList.remove('waiting');
      this.table.show(rows, chosenColumns(columnsOf(schema, app.view().field), app.view().columns), sort, near ? 'nearest first' : '');
      this.refresh();
    });
  }

  private refresh(): void {
    const none = this.rows?.total === 0;
    $('table').classList.remove('stale');
    $('table').hidden = none;
    $('no-rows').hidden = !none;
    $('no-rows').textContent = sayNone(this.app.open()?.collection.title ?? '', $('layers').querySelector('.file:not(.active)') !== null);
    this.table.refresh();
  }

  /** Asks which columns to show. */
  private choose(): void {
    const open = this.app.open();
    if (!open) return;
    const all = columnsOf(open.schema, this.app.view().field);
    const shown = new Set((this.app.view().columns ?? all.map(({ name }) => name)).values());
    const list = $('column-list');
    list.replaceChildren(
      ...all.map(({ name, title }) => {
        const label = make('label');
        const box = make('input', '', '', { type: 'checkbox', value: name });
        box.checked = shown.has(name);
        label.append(box, title);
        return label;
      }),
    );
    const dialog = $<HTMLDialogElement>('column-dialog');
    dialog.onclose = () => {
      const names = [...list.querySelectorAll<HTMLInputElement>('input:checked')].map(({ value }) => value);
      if (dialog.returnValue === 'ok') this.app.update({ columns: names.length === all.length || !names.length ? null : names });
    };
    dialog.returnValue = '';
    dialog.showModal();
  }
}
