import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

import { bootId } from '../identity/boot-id.js';
import { pids } from '../identity/pids.js';
import { processTable } from '../identity/platform-table.js';
import { bootPrefix } from '../identity/process-identity.js';
import { bootOf } from '../journal/moments.js';
import type { JournalExit } from '../journal/rows.js';
import type { Run, Subject } from '../journal/story.js';
import { ownedName } from '../where/owned-name.js';
import { whereaboutsOf } from '../where/whereabouts.js';

/** systemd answers in ms, unless it is in trouble. */
const TIMEOUT_MS = 5000;

/** States of a unit whose run has begun, and has not ended. */
const RUNNING: ReadonlySet<unknown> = new Set(['active', 'activating', 'reloading', 'refreshing']);

/** Its processes have ended all the same. */
const ENDED: ReadonlySet<unknown> = new Set([
  ...['auto-restart', 'auto-restart-queued', 'dead', 'exited'],
]);

/** In UTC, because the environment says so: `Fri 2026-11-27 21:00:00 UTC`. */
const TIME = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC/;
const ENVIRONMENT = { ...process.env, TZ: 'UTC', LC_ALL: 'C' };

const [BEGIN, MAIN] = ['InactiveExitTimestamp', 'ExecMainStartTimestamp'];
const PROPERTIES = [
  ...['ActiveState', 'SubState', 'ControlGroup', 'RestartMode'],
  ...[BEGIN, MAIN].flatMap((name) => [name, `${name}Monotonic`]),
];

/**
 * Since when the service or container runs in which this process has ended; `null`: it does not run, or nobody
 * knows, because the journal is of another boot, for example.
 */
export function runsSince({ unit }: Subject, end: JournalExit): Run | null {
  const boot = bootOf(end.id);
  if (!boot.startsWith(bootPrefix(bootId(), null))) return null;
  if (unit === undefined) return containerRunsSince(end, boot);
  // systemctl does not tell of the units of other users.
  const isOfSystem = ownedName(unit).uid === null && unit.endsWith('.service');
  return isOfSystem ? serviceRunsSince(unit, end, boot) : null;
}

function serviceRunsSince(unit: string, { cgroup }: JournalExit, boot: string): Run | null {
  const args = ['show', '--property', PROPERTIES.join(), '--', unit];
  const { error, stdout } = spawnSync('systemctl', args, {
    ...{ encoding: 'utf8', timeout: TIMEOUT_MS, env: ENVIRONMENT },
  });
  if (error !== undefined) return null; // there is no systemd
  const run = serviceRunIn(stdout, cgroup);
  return run && { at: run.at, moment: { bootId: boot, ...run.began } };
}

/** The run of a service, from what `systemctl show` says of it; `null`: there is none, or it is of another service. */
export function serviceRunIn(text: string, cgroup: string | null) {
  const shown = new Map(
    text.split('\n').map((line): [string, string] => {
      const [name = '', value = ''] = line.split(/=(.*)/s, 2);
      return [name, value];
    }),
  );
  // A user, a container or a machine may have a unit of this name, too.
  const group = shown.get('ControlGroup') ?? '';
  if (group === '' || cgroup === null || !`${cgroup}/`.startsWith(`${group}/`)) return null;
  const state = shown.get('ActiveState');
  if (!RUNNING.has(state) || ENDED.has(shown.get('SubState'))) return null;
  const begin = momentIn(shown, BEGIN);
  const main = momentIn(shown, MAIN);
  const isMainOfRun = main !== null && begin !== null && main.monotonicMs >= begin.monotonicMs;
  // It may be started again without having been inactive in between.
  const isDirect = shown.get('RestartMode') === 'direct';
  if (isDirect && state === 'activating') return null;
  const began = isDirect ? main : begin;
  if (began === null) return null;
  // It may have waited for its restart in the meantime.
  return { at: new Date((isMainOfRun ? main : began).wallMs), began };
}

function momentIn(shown: ReadonlyMap<string, string>, name: string) {
  const monotonicMs = Number(shown.get(`${name}Monotonic`)) / 1000;
  const [, day, time] = TIME.exec(shown.get(name) ?? '') ?? [];
  if (!(monotonicMs > 0) || day === undefined || time === undefined) return null;
  return { monotonicMs, wallMs: Date.parse(`${day}T${time}Z`) };
}

/** By its first process, which has the pid 1 in a namespace, and with which all others end. */
function containerRunsSince({ container }: JournalExit, boot: string): Run | null {
  if (container === null || container.id === '') return null;
  for (const pid of pids()) {
    const paths = (textOf(pid, 'cgroup') ?? '')
      .split('\n')
      .map((line) => line.replace(/^\d+:[^:]*:/, ''));
    if (!paths.some((path) => whereaboutsOf(path).container?.id === container.id)) continue;
    if (!/^NSpid:.*\t1$/m.test(textOf(pid, 'status') ?? '')) continue;
    const row = processTable().lookNow(pid);
    if (row === null || row === 'unknown' || row.startTicks === null || row.isDead) continue;
    const at = processTable().startTime(row.startTicks);
    return { at, moment: { bootId: boot, wallMs: at.getTime(), monotonicMs: null } };
  }
  return null;
}

function textOf(pid: number, file: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return null; // it has ended
  }
}
