import type { Intent } from '../../../src/process';
import type { SignalName, SignalSender } from '../../../src';
import type { QmpEvent } from '../../../src/vm';
import { NOWHERE } from '../../../src/where/whereabouts';

import type { Random } from './random';
import type { Truth } from './truth';

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** The start time of every machine. */
const EPOCH_MS = Date.UTC(2026, 0, 1);

/** The pids of the hypervisor, of exitwatch, and of others. */
export const ITS_PID = 4000;
export const OUR_PID = 50;
export const OTHER_PID = 7;

export const dateOf = (ms: number): Date => new Date(EPOCH_MS + ms);

/** The way the machine was started. */
export interface Options {
  version: '7.2' | '10.0';
  noShutdown: boolean;
  noReboot: boolean;
  /** With `-daemonize` and `-D` it logs which signal it obeys. */
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
  /** It waits for a guest from another host. */
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

/** All times are in ms since the start. */
export interface Told {
  at: number;
  event: string;
  data: Record<string, unknown>;
  /** The event as QMP sends it. */
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

/** Who may press the power button, or ask the agent for the same. */
export type Presser = 'us' | 'others' | 'watchdog' | 'our agent' | "others' agent";

/**
 * One machine from its start to its end: what happens to it, and everything that can be observed.
 */
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
  /** Files that it leaves behind. */
  left = { pidfile: false, socket: false };
  truth: Truth | null = null;
  /** What ended it, in a phrase, and what else happened. */
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

  /** Records that this ends the machine, unless something did already. revive() undoes it. */
  decide(ending: string, truth: Truth): void {
    if (this.truth !== null) return;
    this.ending = ending;
    this.truth = truth;
  }

  /** The machine goes on: nothing is decided yet. */
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

  /** Records an intent of exitwatch. */
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

  /**
   * The hypervisor's first event about its end. With `-no-shutdown` it stays unless it is forced.
   */
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

  /** A regular exit. `keepsSocket`: exits by exit(3) without cleaning up. */
  exit(exitCode: number, keepsSocket = false): void {
    this.end = { at: this.now, how: 'exited', exitCode };
    this.left = { pidfile: false, socket: keepsSocket };
  }

  signal(signal: SignalName, sender: Partial<SignalSender> & { pid: number | null }): SignalSender {
    const sent = senderOf(signal, this.now, sender);
    this.signals.push({ at: this.now, sender: sent });
    return sent;
  }

  /** `raisedAfter`: the sender of the signal that it caught and raised again. */
  dieOf(by: SignalSender, isOom = false, raisedAfter: SignalSender | null = null): void {
    this.wait(0, 3);
    this.end = { at: this.now, how: 'killed', signal: by.signal, by, isOom, raisedAfter };
    this.left = { pidfile: true, socket: true };
  }

  /** SIGTERM, SIGINT or SIGHUP, when the machine is ready to obey. */
  obey(by: SignalSender): void {
    this.wait(1, 10);
    const path = by.pid === null ? null : '/bin/kill';
    this.obeyed = { signal: by.signal, pid: by.pid, path };
    this.shutDown('host-signal');
  }

  /** The recent presses that were not obeyed. */
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
    ...{ startedAt: null, uid: 0, program: null, cgroup: null, ...NOWHERE, ancestors: [] },
    ...{ onBehalf: false, onBehalfReason: null, likelyClients: null, commandLine: null },
  };
}

export function describeTime(ms: number): string {
  if (ms < 2 * MINUTE) return `${(ms / SECOND).toFixed(3)} s:`;
  if (ms < 2 * HOUR) return `${(ms / MINUTE).toFixed(2)} min:`;
  return `${(ms / HOUR).toFixed(3)} h:`;
}
