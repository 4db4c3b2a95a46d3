// Requests flame graphs from the server. A zoom fetches only the subtree, and only if the current graph does not contain it all.
import { ApiError, graphApi, orEmpty, PATH_SEPARATOR } from '../api/client';
import type { FlameGraph } from '../api/types';
import { isDiff } from './difference';
import { graft, hasPrunedBelow } from '../model/graft';
import type { CallersHead, CallersQuestion, FlameHead, FlameQuestion } from './messages';

// The server accepts URLs of up to 1 MiB. A path of several thousand frames with long names exceeds that.
const MOST_PATH = 1_000_000;
const isTooLong = (path: readonly string[]) =>
  path.length > 100 && encodeURIComponent(path.join(PATH_SEPARATOR)).length > MOST_PATH;

// Missing data (404) is not an error.
const orNull = <T>(answer: Promise<T>): Promise<T | null> =>
  answer.catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });

export class Answers {
  private base: FlameGraph | null = null; // the last answer for the whole tree, without a grafted subtree
  private id = 0;

  async flame(question: FlameQuestion, signal: AbortSignal): Promise<{ head: FlameHead; graph: FlameGraph } | null> {
    const { view, baseline, shape, path } = question;
    const ask = (at: readonly string[]): Promise<FlameGraph> =>
      baseline ? graphApi.diff(view, baseline, shape, at, signal) : graphApi.flamegraph(view, shape, at, signal);
    const holds = this.base !== null && question.keep === this.id;
    const base = holds ? this.base! : await orEmpty(ask([]));
    if (!base) return null;
    const lacks = path.length > 0 && !isTooLong(path) && hasPrunedBelow(base, path, shape.merge);
    const detail = lacks ? await orNull(ask(path)) : null;
    if (!holds) {
      this.base = base;
      this.id += 1;
    }
    const against = isDiff(base) ? { session: base.base.session, data_version: base.base.data_version } : null;
    return {
      head: { base: this.id, data_version: base.data_version, newest_ns: base.newest_ns, against },
      graph: detail ? graft(base, path, detail, shape.merge) : base,
    };
  }

  async callers(
    question: CallersQuestion,
    signal: AbortSignal,
  ): Promise<{ head: CallersHead; callers: FlameGraph; callees: FlameGraph } | null> {
    const { view, shape, name, module } = question;
    const answer = await orNull(graphApi.callers(view, shape, name, module, signal));
    if (!answer) return null;
    const { callers, callees, ...head } = answer;
    return { head, callers, callees };
  }
}
