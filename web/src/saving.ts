// Files that the page makes: written to disk as they arrive where the browser lets pages do that, else kept in memory.
import { Problem } from './api';

/** Max bytes of a file that is kept in memory. */
const MEMORY_MAX = 1e9;

/** What to say of a chosen file that was not written: what it had before is gone since the choice. */
export const LOST = 'A file that was replaced is lost.';

/** A file that is being made. */
export interface Destination {
  readonly stream: WritableStream<Uint8Array>;
  /** Whether the user chose a file, which the browser emptied at once. */
  readonly chosen: boolean;
  /** Hands the file over, once the stream has closed. */
  keep(): void;
  /** Leaves no file. Nothing may fill the stream any more. */
  discard(): Promise<void>;
}

/** A chosen file. Not every browser removes one for a page. */
type Handle = Pick<FileSystemFileHandle, 'createWritable'> & { remove?(): Promise<void> };

interface Picker {
  showSaveFilePicker?(options: { suggestedName: string; types: { description: string; accept: Record<string, string[]> }[] }): Promise<Handle>;
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
  return { stream, chosen: false, keep: () => save(new Blob(parts, { type })), discard: () => stream.abort() };
}

/** Removes a chosen file, which is empty until all of it is written. */
async function remove(handle: Handle): Promise<void> {
  // It may be gone already, or the browser refuses: the file then stays empty.
  await handle.remove?.().catch(() => {});
}

/** A file on disk. Until the stream closes, the browser keeps the bytes in a file beside it. */
async function onDisk(handle: Handle): Promise<Destination> {
  try {
    const stream = await handle.createWritable();
    const discard = async (): Promise<void> => {
      // The browser removes no file that is still written.
      await stream.abort().catch(() => {});
      await remove(handle);
    };
    return { stream, chosen: true, keep: () => {}, discard };
  } catch (error) {
    await remove(handle);
    throw new Problem('The chosen file cannot be written', `${error instanceof Error ? error.message : String(error)} ${LOST}`, 0, '');
  }
}

/** Passes bytes on, and tells how many came so far. */
export function counted(seen: (bytes: number) => void): TransformStream<Uint8Array, Uint8Array> {
  let bytes = 0;
  return new TransformStream({
    transform(chunk, out) {
      seen((bytes += chunk.length));
      out.enqueue(chunk);
    },
  });
}

/** Whether the browser asks where a file goes. */
export const asks = (): boolean => (window as Picker).showSaveFilePicker !== undefined;

/** Asks where a file of a type goes; null if the user wants none, undefined if the browser does not ask. Browsers ask only in answer to a click. */
export async function chosen(name: string, type: string, description: string): Promise<Destination | null | undefined> {
  const extension = name.slice(name.lastIndexOf('.'));
  let handle: Handle | undefined;
  try {
    handle = await (window as Picker).showSaveFilePicker?.({ suggestedName: name, types: [{ description, accept: { [type]: [extension] } }] });
  } catch (error) {
    if (error instanceof DOMException && error.name === 'AbortError') return null;
    // Frames of other sites and some settings refuse.
  }
  return handle ? onDisk(handle) : undefined;
}

/** The same, with memory where the browser does not ask. */
export async function destination(name: string, type: string, description: string): Promise<Destination | null> {
  const file = await chosen(name, type, description);
  return file === undefined ? inMemory((blob) => saveBlob(blob, name), type) : file;
}
