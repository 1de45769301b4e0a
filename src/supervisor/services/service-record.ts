import { createHmac, randomBytes } from 'node:crypto';

import { isObject } from '../../common/is-object.js';
import { invalidOption } from '../../common/options.js';
import type { ProcessIdentity } from '../../identity/process-identity.js';

import { boot } from './boot.js';
import type { StopIntent } from './restart-policy.js';
import { runPart, type ServiceSpec } from './service-spec.js';

/** The version of the files; another one is refused. */
export const RECORD_VERSION = 1;

/** A service as it is stored. */
export interface StoredSpec {
  /** As the redaction hook returns it. */
  spec: ServiceSpec;
  /** The hook took something away: it cannot be started from here. */
  isRedacted: boolean;
  salt: string;
  /** Tells whether another one is equal; keyed, so that a secret cannot be guessed from it. */
  digest: string;
  /** The same for what a run depends on. */
  runDigest: string;
}

/** A run whose id was reserved, so that nothing else starts under it. */
export interface StoredRun {
  id: string;
  /** What it was started as. */
  runDigest: string;
  /** `null`: it was not started, or we died before we knew. */
  identity: ProcessIdentity | null;
  isPaused: boolean;
  /** A check of its readiness has succeeded; what its keeper knows of that is not here. */
  isReady?: boolean;
  /** On disk before the first signal. */
  intent: StopIntent | null;
  /** Removed when it has ended. */
  pidfile: string | null;
}

/** Somebody has stopped it, and it stays so. */
export interface StoredStop {
  until: 'start' | 'reboot';
  bootId: string;
  at?: string;
  why?: string | null;
}

/** How the last run ended. */
export interface StoredEnd {
  run: string;
  how: string;
  exitCode: number | null;
  signal: string | null;
  at: string;
  reason: string;
  because: string;
}

/** All that a service needs to go on after we died. */
export interface ServiceRecord {
  version: typeof RECORD_VERSION;
  name: string;
  /** Tells services of one name apart: a removed one that was created again is another one. */
  uid: string;
  /** See boot(). */
  bootId: string;
  stored: StoredSpec;
  isRemoved: boolean;
  /** Takes its place after it was removed. */
  next: StoredSpec | null;
  /** An operator stopped it. */
  stopped: StoredStop | null;
  /** It is not started again: its policy says so, or it has failed too often. */
  rest: 'ended' | 'failed' | null;
  /** The number in the id of its last run. */
  lastRun: number;
  run: StoredRun | null;
  /** Starts in a row without a healthy run. */
  attempts: number;
  /** The next start waits until then, by the clock that all programs of one boot share. */
  dueAtMs: number;
  /** Why it is started again next; `null`: it is not, or for no reason that counts. */
  planned?: string | null;
  restarts: number;
  lastEnd: StoredEnd | null;
}

/** Takes secrets out of a service before it is stored. */
export type Redact = (spec: ServiceSpec) => ServiceSpec;

export function newRecord(stored: StoredSpec): ServiceRecord {
  return {
    version: RECORD_VERSION,
    name: stored.spec.name,
    uid: randomBytes(4).toString('hex'),
    bootId: boot(),
    stored,
    isRemoved: false,
    next: null,
    stopped: null,
    rest: null,
    lastRun: 0,
    run: null,
    attempts: 0,
    dueAtMs: 0,
    planned: null,
    restarts: 0,
    lastEnd: null,
  };
}

/** @param salt that of what it replaces, so that the two can be compared */
export function toStored(
  spec: ServiceSpec,
  redact: Redact | undefined,
  salt = randomBytes(16).toString('hex'),
): StoredSpec {
  const plain = canonical(spec);
  const given = redact === undefined ? spec : redact(structuredClone(spec));
  if (!isObject(given) || given.name !== spec.name) {
    throw invalidOption(`redact must return the service ${JSON.stringify(spec.name)}`);
  }
  return {
    spec: given,
    isRedacted: canonical(given) !== plain,
    salt,
    digest: digestOf(plain, salt),
    runDigest: digestOf(canonical(runPart(spec)), salt),
  };
}

/** Whether this is what is stored, redacted or not. */
export function isStored(spec: ServiceSpec, stored: StoredSpec): boolean {
  return stored.digest === digestOf(canonical(spec), stored.salt);
}

/** Whether what was decided holds: nothing differs of what was run, or of when it is started again. */
export function restsAlike(before: StoredSpec, after: StoredSpec): boolean {
  if (before.runDigest !== after.runDigest) return false;
  const why = ({ spec: { restart, successExitCodes, askedBy, onUnknown, backoff } }: StoredSpec) =>
    canonical({ restart, successExitCodes, askedBy, onUnknown, backoff });
  return why(before) === why(after);
}

/** The id of a run: its service, which one of that name, and a number that never comes again. */
export const runId = ({ name, uid }: ServiceRecord, number: number) => `${name}.${uid}-${number}`;

/** The service that an id names; `null`: it is none of ours. */
export function serviceOf(id: string): { name: string; uid: string } | null {
  const [, name, uid] = /^(.+)\.([0-9a-f]{8})-\d+$/.exec(id) ?? [];
  return name === undefined || uid === undefined ? null : { name, uid };
}

function digestOf(text: string, salt: string): string {
  return createHmac('sha256', salt).update(text).digest('hex');
}

/** The order in which somebody wrote the options does not count. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );
}
