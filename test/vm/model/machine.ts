import type { Intent } from '../../../src/process';
import type { SignalName, SignalSender } from '../../../src';
import type { QmpEvent } from '../../../src/vm';

import type { Random } from './random';
import type { Truth } from './truth';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** When each of them starts. */
const EPOCH_MS = Date.UTC(2026, 0, 1);

/** Of the hypervisor; of us; of others. */
export const ITS_PID = 4000;
export const OUR_PID = 50;
export const OTHER_PID = 7;

export const dateOf = (ms: number): Date => new Date(EPOCH_MS + ms);

/** How it was started. */
export interface Options {
  version: '7.2' | '10.0';
  noShutdown: boolean;
  noReboot: boolean;
  /** With `-daemonize` and `-D`: it says which signal it obeys. */
  log: boolean;
  eventLog: boolean;
  pidfile: boolean;
  qmp: boolean;
  watchdog: 'poweroff' | 'shutdown' | 'none' | null;
  agent: 'none' | 'held' | 'open';
  debugExit: boolean;
  panic: 'poweroff' | 'pause' | 'exit-failure' | 'run';
  /** The migration capability `events`. */
  migrationEvents: boolean;
  /** `-S` */
  startsPaused: boolean;
  /** It waits for a guest that comes from another host. */
  incoming: boolean;
}

export type Status =
  | 'prelaunch'
  | 'inmigrate'
  | 'running'
  | 'paused'
  | 'shutdown'
  | 'guest-panicked'
  | 'postmigrate'
  | 'save-vm'
  | 'io-error';

/** All times are in ms since its start. */
export interface Told {
  at: number;
  event: string;
  data: Record<string, unknown>;
  /** As QMP has it. */
  told: QmpEvent;
}

export interface Sent {
  at: number;
  sender: SignalSender;
}

export interface Intended extends Omit<Intent, 'at' | 'deadline' | 'identity' | 'who'> {
  at: number;
  deadline: number;
}

export type Ended =
  | { at: number; how: 'exited'; exitCode: number }
  | {
      at: number;
      how: 'killed';
      signal: SignalName;
      by: SignalSender;
      isOom: boolean;
      raisedAfter: SignalSender | null;
    };

/** Who may press its power button, or have the agent do as much. */
export type Presser = 'us' | 'others' | 'watchdog' | 'our agent' | "others' agent";

/** One machine, from its start to its end: what happens to it, and all that is to be seen of that. */
export class Machine {
  readonly options: Options;
  readonly random: Random;
  now = 0;
  readonly events: Told[] = [];
  readonly statuses: { at: number; status: Status }[] = [];
  readonly signals: Sent[] = [];
  readonly intents: Intended[] = [];
  readonly presses: { at: number; by: Presser; deadline: number; wasObeyed: boolean }[] = [];
  obeyed: { signal: SignalName; pid: number | null; path: string | null } | null = null;
  isReady = false;
  end: Ended | null = null;
  /** Files that it has left behind. */
  left = { pidfile: false, socket: false };
  truth: Truth | null = null;
  /** What has ended it, in a word; what there was besides. */
  ending = '';
  readonly labels = new Set<string>();
  readonly words: string[] = [];

  constructor(options: Options, random: Random) {
    this.options = options;
    this.random = random;
  }

  get status(): Status {
    return this.statuses.at(-1)?.status ?? 'prelaunch';
  }

  wait(least: number, most = least): void {
    this.now += this.random.between(least, most);
  }

  say(words: string): void {
    this.words.push(`${describeTime(this.now)} ${words}`);
  }

  tell(event: string, data: Record<string, unknown> = {}): void {
    const { now: at } = this;
    this.events.push({ at, event, data, told: { event, data, at: dateOf(at) } });
  }

  become(status: Status): void {
    this.statuses.push({ at: this.now, status });
  }

  /** What has happened ends it, or did already, unless it is revived. */
  decide(ending: string, truth: Truth): void {
    if (this.truth !== null) return;
    this.ending = ending;
    this.truth = truth;
  }

  /** It goes on: nothing is decided yet. */
  revive(): void {
    this.truth = null;
    this.ending = '';
  }

  pause(status: Status): void {
    this.tell('STOP');
    this.become(status);
  }

  resume(): void {
    this.become('running');
    this.tell('RESUME');
  }

  /** We write down what we are about to do, and do it. */
  intend(
    what: Intended['what'],
    withinMs: number,
    outcome: Intended['outcome'] = 'delivered',
  ): Intended {
    const id = `intent-${this.intents.length}`;
    const deadline = this.now + withinMs;
    const intent: Intended = {
      ...{ event: 'intent', id, at: this.now, what, why: null, deadline, outcome },
    };
    this.intents.push(intent);
    this.wait(1, 5);
    return intent;
  }

  /** The hypervisor's first word on its end; with `-no-shutdown` it stays, but for what forces it. */
  shutDown(reason: string): void {
    const isGuests = reason.startsWith('guest-');
    this.tell('SHUTDOWN', { guest: isGuests, reason });
    const stays = this.options.noShutdown && (isGuests || reason === 'host-qmp-system-reset');
    if (stays) {
      this.labels.add('lingered');
      this.pause('shutdown');
      return;
    }
    this.wait(1, 5);
    this.exit(0);
  }

  get isGone(): boolean {
    return this.end !== null;
  }

  /** In good order; `keepsSocket`: by exit(3), past its cleaning up. */
  exit(exitCode: number, keepsSocket = false): void {
    this.end = { at: this.now, how: 'exited', exitCode };
    this.left = { pidfile: false, socket: keepsSocket };
  }

  signal(signal: SignalName, sender: Partial<SignalSender> & { pid: number | null }): SignalSender {
    const sent = senderOf(signal, this.now, sender);
    this.signals.push({ at: this.now, sender: sent });
    return sent;
  }

  /** `raisedAfter`: whose signal it has caught, and sent to itself once more. */
  dieOf(by: SignalSender, isOom = false, raisedAfter: SignalSender | null = null): void {
    this.wait(0, 3);
    this.end = { at: this.now, how: 'killed', signal: by.signal, by, isOom, raisedAfter };
    this.left = { pidfile: true, socket: true };
  }

  /** SIGTERM, SIGINT or SIGHUP, when it is ready to obey them. */
  obey(by: SignalSender): void {
    this.wait(1, 10);
    const path = by.pid === null ? null : '/bin/kill';
    this.obeyed = { signal: by.signal, pid: by.pid, path };
    this.shutDown('host-signal');
  }

  /** Somebody's press was obeyed. */
  pressesWithin(ms: number): Machine['presses'] {
    return this.presses.filter(({ at, wasObeyed }) => !wasObeyed && this.now - at <= ms);
  }
}

function senderOf(
  signal: SignalName,
  at: number,
  { pid, origin }: Partial<SignalSender> & { pid: number | null },
): SignalSender {
  const sentAt = dateOf(at);
  if (pid === null) {
    return { signal, sentAt, origin: origin === 'fault' ? 'fault' : 'kernel', pid };
  }
  const name = pid === ITS_PID ? 'qemu-system-x86' : pid === OUR_PID ? 'exitwatch' : 'sh';
  return {
    ...{ signal, sentAt, origin: origin === 'tgkill' ? 'tgkill' : 'kill', pid, name },
    ...{ uid: 0, cgroup: null, ancestors: [] },
  };
}

export function describeTime(ms: number): string {
  if (ms < 2 * MINUTE) return `${(ms / SECOND).toFixed(3)} s:`;
  if (ms < 2 * HOUR) return `${(ms / MINUTE).toFixed(2)} min:`;
  return `${(ms / HOUR).toFixed(3)} h:`;
}
