import type { VmEnd, VmStart, VmVerdict } from '../../vm/index.js';

import { escapeText, toJsonLine } from './escape.js';
import { clock } from './exit-table.js';

/** What is to be done about an end, as far as that is known. */
function adviceOn({ userShutdown, initiator }: VmVerdict): string {
  if (userShutdown === true) return 'the user: leave it off';
  if (userShutdown === null) return 'the user or not: not known';
  return initiator === 'manager' ? 'not the user, but its manager' : 'not the user';
}

/** An end in a sentence. */
export function describeStop(stop: VmVerdict): string {
  return `${escapeText(stop.summary)} [${adviceOn(stop)}]`;
}

/** How many there are. */
export function describeWatched(watched: number): string {
  return `${watched} virtual machine${watched === 1 ? '' : 's'} under watch`;
}

/** Virtual machines as they come and go: a line for each, as JSON or for people. */
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
    const who = identity === null ? 'found when it had ended' : `runs as process ${identity.pid}`;
    this.#print({ event: 'found', ...start }, `${escapeText(name)}: ${who}`);
  }

  /** Of a machine that was found to have ended by a directory or the daemon, or of one that was watched. */
  stopped({ stop, ...end }: Pick<VmEnd, 'stop'> & Partial<VmEnd>): void {
    const repeated = end.isRepeated === true ? ' (told before)' : '';
    this.#print({ ...stop, ...end }, `${describeStop(stop)}${repeated}`);
  }

  warning(error: Error, name: string | null): void {
    const { code = null } = error as { code?: string };
    const about = name === null ? '' : `${escapeText(name)}: `;
    const fields = { event: 'warning', name, code, message: error.message };
    this.#print(fields, `WARNING: ${about}${escapeText(error.message)}`);
  }

  presence(path: string, isThere: boolean): void {
    const text = isThere ? 'is there' : 'is not there: it is waited for';
    this.#print({ event: 'control-dir', path, isThere }, `${escapeText(path)} ${text}`);
  }

  #print(fields: object, text: string): void {
    const line = this.#asJson ? toJsonLine(fields) : `${clock(new Date())}  ${text}`;
    process.stdout.write(`${line}\n`);
  }
}
