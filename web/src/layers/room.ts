// The list of layers, and how the one that is asked about is drawn.
import * as api from '../api';
import type { App } from '../app';
import { $, make } from '../dom';
import type { Files } from '../files/files';
import { OTHERS_MAX, type LayerView } from '../hash';
import { formatShort } from '../numbers';
import { layerPalette, LIGHT } from '../palette';
import { eye, icon } from './icon';
import { add, activate, change, collectionsOf, move, remove, stackOf } from './stack';

export class LayersRoom {
  /** Whether a button of the list is held down: it must be there at the release, so the list stays as it is until then. */
  private held = false;

  constructor(
    private readonly app: App,
    private readonly files: Files,
  ) {
    $('add-layer').addEventListener('change', () => {
      const select = $<HTMLSelectElement>('add-layer');
      const { value } = select;
      select.value = '';
      if (value) app.update(add(app.view(), value));
    });
    $('layers').addEventListener('pointerdown', () => (this.held = true));
    // The click comes after the release, and its outcome is shown at once.
    $('layers').addEventListener('click', () => (this.held = false), true);
    for (const end of ['pointerup', 'pointercancel']) window.addEventListener(end, () => this.held && setTimeout(() => this.release()));
    $('size').addEventListener('change', () => app.update({ size: $<HTMLSelectElement>('size').value }));
    $('opacity').addEventListener('input', () => app.update({ opacity: Number($<HTMLInputElement>('opacity').value) / 100 }));
  }

  /** Fills the lists of fields for colour and for size, which are of what the server draws. */
  fill(schema: api.Schema, served: boolean): void {
    const option = ({ name, title }: api.Field): HTMLElement => make('option', '', title, { value: name });
    const group = (label: string, fields: readonly api.Field[]): HTMLElement[] => {
      if (!fields.length) return [];
      const made = make('optgroup', '', '', { label });
      made.append(...fields.map(option));
      return [made];
    };
    const numbers = schema.fields.filter(({ kind }) => kind === 'int' || kind === 'float');
    const values = schema.fields.filter(({ kind }) => kind === 'text' || kind === 'bool');
    $('field').replaceChildren(make('option', '', 'none', { value: '' }), ...group('Numbers', numbers), ...group('Values', values));
    $('size').replaceChildren(make('option', '', 'alike', { value: '' }), ...numbers.map(option));
    $('style-room').hidden = !served || (!schema.geometry && !numbers.length);
  }

  private release(): void {
    this.held = false;
    this.show();
  }

  /** Shows the layers, the uppermost first. */
  show(): void {
    if (this.held) return;
    const view = this.app.view();
    const [layers, { active }] = [collectionsOf(view), stackOf(view)];
    const focus = document.activeElement instanceof HTMLElement ? document.activeElement.dataset : {};
    const [at, act] = [focus['layer'], focus['act']];
    const rows = layers.map((layer, i) => this.row(layer, i, active, layers.length));
    const files = this.files.rows();
    $('layers').replaceChildren(...files, ...rows.reverse());
    // The count is of one layer: beside others, and beside a file that was opened, it says of which.
    const open = this.app.open();
    $('count-of').textContent = open && files.length + layers.length > 1 ? `of ${open.collection.title}` : '';
    if (at) $('layers').querySelector<HTMLElement>(`[data-layer="${CSS.escape(at)}"][data-act="${act}"]`)?.focus();
    const taken = new Set(layers.map(({ collection }) => collection));
    const left = this.app.list().filter(({ id, bbox }) => !taken.has(id) && bbox);
    $('add-layer').replaceChildren(make('option', '', 'Add…', { value: '' }), ...left.map((c) => make('option', '', c.count === null ? c.title : `${c.title} (${formatShort(c.count)})`, { value: c.id })));
    $<HTMLSelectElement>('add-layer').disabled = !left.length || layers.length > OTHERS_MAX || !this.app.open();
    $<HTMLSelectElement>('field').value = view.field;
    $<HTMLSelectElement>('size').value = view.size;
    if (document.activeElement !== $('opacity')) $<HTMLInputElement>('opacity').value = String(Math.round(view.opacity * 100));
    this.colors();
  }

  private row(layer: LayerView, index: number, active: number, count: number): HTMLElement {
    const { app } = this;
    const title = app.list().find(({ id }) => id === layer.collection)?.title ?? layer.collection;
    const row = make('li', [index === active ? 'active' : '', layer.hidden ? 'off' : ''].filter(Boolean).join(' '), '', { 'data-collection': layer.collection });
    const name = make('button', 'layer-name', '', { type: 'button', 'aria-pressed': String(index === active), title: index === active ? `${title}: asked about` : `Ask about ${title}`, 'data-act': 'name' });
    const dot = make('em', '', '', { 'aria-hidden': 'true' });
    dot.style.background = layerPalette(app.map()?.palette() ?? LIGHT, layer.color).point;
    name.append(dot, make('span', '', title));
    name.addEventListener('click', () => app.update(activate(app.view(), index)));
    const buttons = [name];
    if (count > 1) {
      const up = icon('up', `Move ${title} up`, () => app.update(move(app.view(), index, 1)));
      const down = icon('down', `Move ${title} down`, () => app.update(move(app.view(), index, -1)));
      up.disabled = index === count - 1;
      down.disabled = index === 0;
      buttons.push(up, down, icon('remove', `Remove ${title}`, () => app.update(remove(app.view(), index))));
    }
    buttons.splice(1, 0, eye(layer.hidden, title, () => app.update(change(app.view(), index, { hidden: !layer.hidden }))));
    for (const button of buttons) button.dataset['layer'] = layer.collection;
    row.append(...buttons);
    return row;
  }

  private colors(): void {
    const { app } = this;
    const view = app.view();
    const palette = app.map()?.palette() ?? LIGHT;
    const names = ['Meridian', 'blue', 'violet', 'green', 'pink', 'olive', 'sky', 'indigo', 'pine'];
    const held = $('colors').contains(document.activeElement);
    $('colors').replaceChildren(
      ...[palette.point, ...palette.categories].map((color, i) => {
        const chosen = view.color === i;
        const button = make('button', '', '', { type: 'button', role: 'radio', 'aria-checked': String(chosen), 'aria-label': names[i], title: names[i], tabindex: chosen ? '0' : '-1', 'data-color': String(i) });
        button.style.background = color;
        button.addEventListener('click', () => app.update({ color: i }));
        return button;
      }),
    );
    if (held) $('colors').querySelector<HTMLElement>('[aria-checked=true]')?.focus();
    $('colors').onkeydown = (e) => {
      const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
      if (!by) return;
      e.preventDefault();
      app.update({ color: (view.color + by + names.length) % names.length });
    };
  }
}
