import type { StopWait } from '../../process/index.js';
import { formatDuration } from '../args/duration.js';

import { escapeText } from './escape.js';

/** Shorter waits are not announced. */
const PATIENCE_MS = 100;

/** Shows on a terminal what is being waited for, and how long. */
export class StopProgress {
  #timer: NodeJS.Timeout | undefined;

  tell(wait: StopWait): void {
    this.end();
    if (wait.inMs > PATIENCE_MS) this.write(describeWait(wait));
  }

  /** Prints a line, unless end() is called before the line could be read. */
  write(line: string): void {
    this.end();
    if (!process.stderr.isTTY) return;
    this.#timer = setTimeout(() => {
      process.stderr.write(`${line}\n`);
    }, PATIENCE_MS);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

/** `waiting for 4242 (nginx) and 3 others: SIGKILL in 5s` @internal */
export function describeWait({ waitingFor, next, inMs }: StopWait): string {
  const [first, ...others] = waitingFor;
  const name = first?.name == null ? '' : ` (${escapeText(first.name)})`;
  const more = others.length === 1 ? ' and 1 other' : ` and ${others.length} others`;
  const who = `${first?.identity.pid ?? ''}${name}${others.length === 0 ? '' : more}`;
  return `waiting for ${who}: ${next ?? 'giving up'} in ${formatDuration(inMs)}`;
}
