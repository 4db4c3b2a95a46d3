// Sends a file in slices. After an error, it continues from the offset that the server reports, after growing pauses.
// It gives up with the last error after several attempts without progress.
import { api, ApiError } from './client';

const SLICE = 1024 * 1024;
const ATTEMPTS = 6;

export interface UploadProgress {
  (sent: number, size: number): void;
}

const pause = (ms: number) => new Promise<void>((done) => setTimeout(done, ms));
const isPassing = (error: unknown) =>
  error instanceof ApiError && (error.status === 0 || error.status === 409 || error.status >= 502);

async function where(id: string, size: number, signal: AbortSignal): Promise<number> {
  try {
    const state = await api.upload(id, signal);
    return state.size === size ? state.offset : 0;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return 0;
    throw error;
  }
}

export async function sendFile(id: string, file: Blob, progress: UploadProgress, signal: AbortSignal): Promise<void> {
  let failures = 0;
  let offset = -1;
  for (;;) {
    try {
      if (offset < 0) offset = await where(id, file.size, signal);
      progress(offset, file.size);
      while (offset < file.size) {
        const state = await api.sendSlice(id, offset, file.size, file.slice(offset, offset + SLICE), signal);
        offset = state.offset;
        failures = 0;
        progress(offset, file.size);
      }
      return;
    } catch (error) {
      if (!isPassing(error) || ++failures >= ATTEMPTS) throw error;
      offset = -1;
      await pause(250 * 2 ** failures);
    }
  }
}
