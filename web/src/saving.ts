// Files that the page makes: written to disk as they arrive where the browser lets pages do that, else kept in memory.
import { Problem } from './api';

/** Max bytes of a file that is kept in memory. */
const MEMORY_MAX = 1e9;

/** A file that is being made. */
export interface Destination {
  /** Takes the bytes. If it is aborted, there is no file. */
  readonly stream: WritableStream<Uint8Array>;
  /** Hands the file over, once the stream has closed. */
  keep(): void;
}

interface Picker {
  showSaveFilePicker?(options: { suggestedName: string; types: { description: string; accept: Record<string, string[]> }[] }): Promise<FileSystemFileHandle>;
}

/** Saves what the page has in memory, as a download of the browser. */
export function saveBlob(blob: Blob, name: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser reads it after this.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** A file in memory. */
export function inMemory(save: (blob: Blob) => void, type: string, max = MEMORY_MAX): Destination {
  const parts: BlobPart[] = [];
  let size = 0;
  const stream = new WritableStream<Uint8Array>({
    write(part) {
      size += part.length;
      if (size > max) throw new Problem('The file is too large', `This browser keeps it in memory, up to ${max / 1e6} MB. NDJSON is saved as it arrives.`, 0, '');
      parts.push(part as Uint8Array<ArrayBuffer>);
    },
  });
  return { stream, keep: () => save(new Blob(parts, { type })) };
}

/** Asks where a file goes; null if the user wants none. Browsers ask only in answer to a click. */
export async function destination(name: string, type: string): Promise<Destination | null> {
  const extension = name.slice(name.lastIndexOf('.'));
  try {
    const handle = await (window as Picker).showSaveFilePicker?.({ suggestedName: name, types: [{ description: 'GeoJSON', accept: { [type]: [extension] } }] });
    // Until it is closed, the bytes are in a file beside it.
    if (handle) return { stream: await handle.createWritable(), keep: () => {} };
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') return null;
    // Frames of other sites and some settings refuse; memory does as well.
  }
  return inMemory((blob) => saveBlob(blob, name), type);
}
