import type { VmEnd, VmStart, VmVerdict } from '../../vm/index.js';

import { escapeText, toJsonLine } from './escape.js';
import { clock } from './times.js';

/** What to do about an exit, if that is known. */
function adviceOn({ userShutdown, initiator }: VmVerdict): string {
  if (userShutdown === true) return 'shut down by its user: leave it off';
  if (userShutdown === null) return 'shut down by its user or not: unknown';
  return initiator === 'manager' ? 'ended by its manager, not its user' : 'not ended by its user';
}

/** An exit as a sentence. */
export function describeStop(stop: VmVerdict): string {
  return `${escapeText(stop.summary)} [${adviceOn(stop)}]`;
}

/** The number of machines under watch, as text. */
export function describeWatched(watched: number): string {
  return `watching ${watched} virtual machine${watched === 1 ? '' : 's'}`;
}

/** Prints a line for each virtual machine that starts or exits, as JSON or for people. */
export class VmLines {
  readonly #asJson: boolean;

  constructor(asJson: boolean) {
    this.#asJson = asJson;
  }

  ready(watched: number): void {
    this.#print({ event: 'ready', watched }, describeWatched(watched));
  }

  found(start: VmStart): void {
    const { name, identity } = start;
    const who =
      identity === null ? 'found after it had ended' : `running as process ${identity.pid}`;
    this.#print({ event: 'found', ...start }, `${escapeText(name)}: ${who}`);
  }

  /** For an exit found by a directory or the daemon, or of a watched machine. */
  stopped({ stop, ...end }: Pick<VmEnd, 'stop'> & Partial<VmEnd>): void {
    const repeated = end.isRepeated === true ? ' (reported before)' : '';
    const superseded = end.isSuperseded === true ? ' (started again since)' : '';
    this.#print({ ...stop, ...end }, `${describeStop(stop)}${repeated}${superseded}`);
  }

  warning(error: Error, name: string | null): void {
    const { code = null } = error as { code?: string };
    const about = name === null ? '' : `${escapeText(name)}: `;
    const fields = { event: 'warning', name, code, message: error.message };
    this.#print(fields, `WARNING: ${about}${escapeText(error.message)}`);
  }

  presence(path: string, isThere: boolean): void {
    const text = isThere ? 'exists' : 'does not exist; waiting for it';
    this.#print({ event: 'control-dir', path, isThere }, `${escapeText(path)} ${text}`);
  }

  #print(fields: object, text: string): void {
    const line = this.#asJson ? toJsonLine(fields) : `${clock(new Date())}  ${text}`;
    process.stdout.write(`${line}\n`);
  }
}
