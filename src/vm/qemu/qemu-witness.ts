import { existsSync, statSync } from 'node:fs';

import { trustedOwners } from '../../common/file-trust.js';
import { ExitwatchError } from '../../common/errors.js';
import type { ExitEvent } from '../../events/exit-event.js';
import { processTable } from '../../identity/platform-table.js';
import { isAlive } from '../../process/liveness.js';
import type { GuestAgent, VmTestimony } from '../evidence/vm-evidence.js';
import type { VmRequests, VmRun, VmWitness } from '../evidence/vm-witness.js';

import { EventLog, hasAllOf, isFromItsStart } from './event-log.js';
import { readQemuCommand, type QemuCommand } from './qemu-command.js';
import { joined, pressesBefore } from './joined-events.js';
import { QemuLog } from './qemu-log.js';
import type { QemuFiles } from './qemu-files.js';
import type { QmpEvent } from './qmp-event.js';
import { QmpLink } from './qmp-link.js';
import { wasReady } from './readiness.js';
import { CLOCK_SLACK_MS } from './since.js';
import { hasHadAgent } from './telling-events.js';
import { testimonyOf } from './testimony.js';

/**
 * Observes QEMU through its QMP socket, event log, log and command line. `isThere`: the process
 * exists, so what its log holds by now is skipped: QEMU logs what ended it only at its end.
 */
export function qemuWitness(files: QemuFiles, isThere: boolean): (run: VmRun) => VmWitness {
  const logFrom = files.log !== undefined && isThere ? sizeOf(files.log) : 0;
  return (run) => new QemuWitness(files, run, logFrom);
}

class QemuWitness implements VmWitness {
  readonly #files: QemuFiles;
  readonly #run: VmRun;
  readonly #command: QemuCommand | null;
  readonly #eventLog: EventLog | undefined;
  readonly #log: QemuLog | undefined;
  readonly #link: QmpLink | undefined;
  readonly #distrusted = new Set<string>();

  constructor(files: QemuFiles, run: VmRun, logFrom: number) {
    this.#files = files;
    this.#run = run;
    const { identity, isThere, startedAt } = run;
    const { eventLog, eventsAfter: after = null, log, qmp, seenAt = null } = files;
    const share = { startedAt, after, seenAt };
    this.#eventLog = eventLog === undefined ? undefined : new EventLog(eventLog, share);
    this.#log = log === undefined ? undefined : new QemuLog(log, logFrom);
    if (isThere) this.#trustOnly(uidsOf(identity.pid));
    this.#command = files.command ?? (isThere ? readQemuCommand(identity.pid) : null);
    // If the process is gone, the socket is another one's by now, or nobody's.
    if (qmp !== undefined && isThere) this.#link = this.#connect(qmp);
    else if (isThere) run.ready();
  }

  get control(): VmRequests | null {
    const link = this.#link;
    if (link?.isReady !== true) return null;
    const ask = async (command: string) => {
      await link.execute(command);
    };
    return { powerDown: () => ask('system_powerdown'), forceOff: () => ask('quit') };
  }

  async catchUp(): Promise<void> {
    await Promise.all([this.#eventLog?.read(), this.#log?.read()]);
    if (isAlive(this.#run.identity) === 'alive') this.#eventLog?.settle();
    const followed = [this.#eventLog?.file, this.#log?.file].filter((file) => file !== undefined);
    for (const { path, refusal } of followed) {
      if (refusal === null || this.#distrusted.has(path)) continue;
      this.#distrusted.add(path);
      const detail = `ignoring ${JSON.stringify(path)}: it ${refusal}`;
      this.#run.warning(new ExitwatchError('ERR_EXITWATCH_UNTRUSTED_LOG', detail));
    }
  }

  close(): void {
    this.#link?.close();
  }

  async testify(exit: ExitEvent): Promise<VmTestimony> {
    const [isLogged, hasLog] = await Promise.all([
      this.#eventLog?.read() ?? false,
      this.#log?.read() ?? false,
      this.#link?.end(),
    ]);
    const logged = isLogged ? (this.#eventLog?.ownEvents(this.#endOf(exit)) ?? []) : [];
    const heard = this.#link?.events ?? [];
    const defect = this.#defectOf(isLogged, logged, heard);
    const isLogComplete =
      isLogged &&
      defect === null &&
      isFromItsStart(logged, this.#link?.initialStatus) &&
      this.#command?.isIncoming !== true &&
      this.#eventLog?.isSurelyOwn(logged) === true;
    if (defect !== null) {
      const detail = `${JSON.stringify(this.#files.eventLog)} ${defect}`;
      this.#run.warning(new ExitwatchError('ERR_EXITWATCH_QMP', detail));
    }
    const { startedAt } = this.#run;
    const isLinkUnbroken = this.#link?.isUnbroken(exit) === true;
    const events = isLogComplete ? logged : this.#eventsOf(logged, heard, isLinkUnbroken);
    const { qmp } = this.#files;
    return {
      ...testimonyOf(
        {
          events,
          eventsComplete: isLogComplete,
          eventsUnbroken: isLogComplete || isLinkUnbroken,
          initialStatus: isLogComplete ? null : (this.#link?.initialStatus ?? null),
          heardSince: this.#link?.readyAt ?? null,
          lastStatus: this.#lastStatus(logged),
          tellsMigration: this.#link?.tellsMigration === true,
          ...(this.#command === null ? {} : { incoming: this.#command.isIncoming }),
          ready: wasReady(exit, startedAt, this.#link, logged),
          mayLinger: this.#command?.mayLinger ?? null,
          agent: this.#agent(events, isLogComplete),
          ...(this.#command === null ? {} : { debugExit: this.#command.hasDebugExit }),
          obeyed: this.#log?.obeyed(startedAt) ?? null,
          hasLog: hasLog && this.#command?.isDaemonized === true,
          lastWords:
            exit.how === 'exited' && exit.exitCode !== 0
              ? (this.#log?.lastWords(startedAt) ?? [])
              : [],
        },
        exit,
      ),
      socketIsLeft: qmp === undefined ? null : existsSync(qmp),
    };
  }

  /** Neither witness has all events: what either has counts. */
  #eventsOf(
    logged: readonly QmpEvent[],
    heard: readonly QmpEvent[],
    isLinkUnbroken: boolean,
  ): QmpEvent[] {
    const { initialStatus = null, readyAt = null } = this.#link ?? {};
    // The first status sums up what the log may lack a part of.
    return isLinkUnbroken && initialStatus !== null
      ? [...pressesBefore(logged, readyAt), ...heard]
      : joined(logged, heard);
  }

  #connect(path: string): QmpLink {
    const { identity } = this.#run;
    return new QmpLink(path, this.#files.qmpIsInherited === true ? null : identity.pid, {
      ready: () => {
        this.#run.ready();
      },
      warning: (error) => {
        this.#run.warning(error);
      },
    });
  }

  #trustOnly(uids: readonly number[] | null): void {
    for (const log of [this.#eventLog, this.#log])
      if (log !== undefined) log.file.trustedUids = uids;
  }

  /** What is wrong with its event log; `null`: nothing, there is none, or a warning has said so. */
  #defectOf(
    isLogged: boolean,
    logged: readonly QmpEvent[],
    heard: readonly QmpEvent[],
  ): string | null {
    const log = this.#eventLog;
    if (log?.file.refusal !== null) return null;
    if (log.file.failure !== null) return `cannot be read: ${log.file.failure.message}`;
    const hasRun = this.#link?.readyAt != null;
    if (!isLogged) {
      if (log.file.modifiedAt !== null) return 'no longer exists';
      return hasRun && this.#files.eventLogIsOptional !== true ? 'does not exist' : null;
    }
    if (log.defect !== null) return log.defect;
    // A run that began elsewhere has no beginning here.
    const isWithoutBeginning = this.#command?.isIncoming === true || !log.isSurelyOwn(logged);
    const isLacking =
      (hasRun && !isWithoutBeginning && !isFromItsStart(logged, this.#link.initialStatus)) ||
      !hasAllOf(logged, heard);
    return isLacking ? 'lacks events: the event log does not work' : null;
  }

  /** The last status it reported, unless its event log shows a later resume or reset. */
  #lastStatus(logged: readonly QmpEvent[]): string | null {
    const { last = null, lastAt = null } = this.#link?.status ?? {};
    const hasGoneOn = logged.some(
      ({ event, at }) =>
        (event === 'RESUME' || event === 'RESET') &&
        (at?.getTime() ?? 0) > (lastAt?.getTime() ?? 0),
    );
    return hasGoneOn ? null : last;
  }

  /** `isAll`: none of its run's events is missing. */
  #agent(events: readonly QmpEvent[], isAll: boolean): GuestAgent | null {
    const { agent } = this.#files;
    if (agent !== undefined) return agent;
    if (this.#command === null) {
      // Nobody saw the process, or it was about to exit when we looked: only its log can tell.
      if (hasHadAgent(events)) return 'open';
      return isAll ? 'none' : null;
    }
    const { hasAgent, tellsAgent, otherPorts } = this.#command;
    const wasThere = hasHadAgent(events, otherPorts);
    // Its channel may have been plugged in later, or be in a file of options.
    if (!hasAgent) return wasThere && otherPorts !== undefined ? null : 'none';
    return tellsAgent && isAll && !wasThere ? 'none' : 'open';
  }

  /** When it had exited at the latest: what a log has from later is another start's. */
  #endOf(exit: ExitEvent): Date | null {
    const { endedBefore } = this.#files;
    if (exit.how === 'unknown') return endedBefore ?? null;
    const seen = exit.exitedAt.getTime() + exit.uncertaintyMs + CLOCK_SLACK_MS;
    return new Date(Math.min(seen, endedBefore?.getTime() ?? Infinity));
  }
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}

/** Root, our user, and the user it runs as; `null` if unknown. */
function uidsOf(pid: number): number[] | null {
  const lookup = processTable().lookNow(pid);
  if (lookup === null || lookup === 'unknown' || lookup.uid === null) return null;
  return trustedOwners(lookup.uid);
}
