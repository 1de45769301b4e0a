import { join } from 'node:path';

import { isSameProcess, startOf, type ProcessIdentity } from '../../identity/process-identity.js';
import type { VmOptions } from '../monitor/vm-options.js';

import { SUFFIXES, type ControlFiles } from './control-files.js';
import { bornAtOf, idOf } from './file-stamps.js';
import type { FileTrust } from './file-trust.js';
import type { VmOwner } from './vm-owner.js';
import type { KnownStart } from './vm-start.js';

/** A process this old has made its sockets and its event log, if it has any. */
const STARTED_MS = 10_000;

/** The paths of one name in a control directory, including files that do not exist yet. */
export class ControlPaths {
  readonly #directory: string;
  readonly #name: string;

  constructor(directory: string, name: string) {
    this.#directory = directory;
    this.#name = name;
  }

  of(kind: keyof typeof SUFFIXES): string {
    return join(this.#directory, `${this.#name}${SUFFIXES[kind]}`);
  }

  /** How to watch a process; `files`: those that exist. */
  watchOptions(identity: ProcessIdentity, files: ControlFiles | null): VmOptions {
    const options: VmOptions = {
      ...{ name: this.#name, identity, log: this.of('log') },
      ...{ eventLog: this.of('eventLog'), eventLogIsOptional: true },
    };
    if (files?.qmp !== null || isYoung(identity)) options.qmp = this.of('qmp');
    if (files?.pidfile !== null) options.pidfile = this.of('pidfile');
    return options;
  }

  /** The same after the process has exited: which user it ran as is lost, so `trust` decides. */
  async watchOptionsOfDead(identity: ProcessIdentity, trust: FileTrust): Promise<VmOptions> {
    const { eventLog = '', log = '', ...options } = this.watchOptions(identity, null);
    return {
      ...options,
      ...((await trust.accepts(eventLog)) ? { eventLog } : {}),
      ...((await trust.accepts(log)) ? { log } : {}),
    };
  }

  /** How to watch a process that was found before. */
  resumeOptions(
    start: KnownStart,
    identity: ProcessIdentity,
    files: ControlFiles | null,
  ): VmOptions {
    return { ...this.watchOptions(identity, files), ...knownOf(start) };
  }

  /** The same for a process that has exited meanwhile; `owner`: the owner of the files now. */
  async resumeOptionsOfDead(
    start: KnownStart,
    identity: ProcessIdentity,
    owner: VmOwner | null,
    trust: FileTrust,
  ): Promise<{ options: VmOptions; isLogReplaced: boolean }> {
    const options = { ...(await this.watchOptionsOfDead(identity, trust)), ...knownOf(start) };
    if (owner?.state === 'found' && !isSameProcess(owner.identity, identity)) {
      // Whatever exists by now is the next start's.
      const startedAt = startOf(owner.identity);
      if (startedAt !== null) options.endedBefore = startedAt;
      delete options.qmp;
      delete options.pidfile;
      delete options.log;
    }
    const isLogReplaced = await this.#hasAnotherLog(start);
    if (isLogReplaced) delete options.eventLog;
    return { options, isLogReplaced };
  }

  /** Whether the event log that exists now is a later start's. */
  async #hasAnotherLog({ eventLog, foundAt }: KnownStart): Promise<boolean> {
    const path = this.of('eventLog');
    if (eventLog !== null) return (await idOf(path)) !== eventLog;
    return ((await bornAtOf(path))?.getTime() ?? 0) > foundAt.getTime() + STARTED_MS;
  }
}

function knownOf({ command, foundAt, judgedUntil }: KnownStart) {
  return {
    ...(judgedUntil === null ? {} : { eventsAfter: judgedUntil }),
    seenAt: foundAt,
    ...(command === null ? {} : { command }),
  };
}

function isYoung(identity: ProcessIdentity): boolean {
  const startedAt = startOf(identity);
  return startedAt === null || Date.now() - startedAt.getTime() < STARTED_MS;
}
