// What the parts of the map page share: the view, what it shows, and the way to change it.
import type * as api from './api';
import type { OpenCollection } from './controls';
import type { View } from './hash';
import type { MapView } from './mapview';
import type { Question } from './query';
import type { Work } from './work';

export interface App {
  readonly work: Work;
  view(): View;
  /** The collection that is asked about; null while it opens. */
  open(): OpenCollection | null;
  /** All collections of the server. */
  list(): readonly api.Collection[];
  /** Null without WebGL. */
  map(): MapView | null;
  /** What is asked now. */
  question(): Question;
  /** Changes the view and refreshes what depends on the change. */
  update(change: Partial<View>): void;
  failed(error: unknown): void;
}
