import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';

import { bootId } from '../identity/boot-id.js';
import { processTable } from '../identity/platform-table.js';
import { bootPrefix } from '../identity/process-identity.js';
import { bootOf } from '../journal/moments.js';
import type { JournalExit } from '../journal/rows.js';
import type { Run, Subject } from '../journal/story.js';
import { whereaboutsOf } from '../where/whereabouts.js';

/** systemd answers in ms, unless it is in trouble. */
const TIMEOUT_MS = 5000;

/** States of a unit whose run has begun, and has not ended. */
const RUNNING: ReadonlySet<unknown> = new Set(['active', 'activating', 'reloading', 'refreshing']);

/** Its processes have ended all the same. */
const ENDED: ReadonlySet<unknown> = new Set([
  ...['auto-restart', 'auto-restart-queued', 'dead', 'exited'],
]);

const PROPERTIES = [
  ...['ActiveState', 'SubState', 'ControlGroup', 'RestartMode'],
  ...['InactiveExitTimestampMonotonic', 'ExecMainStartTimestampMonotonic'],
];

/**
 * Since when the service or container runs in which this process has ended; `null`: it does not run, or nobody
 * knows, because the journal is of another boot, for example.
 */
export function runsSince({ unit }: Subject, end: JournalExit): Run | null {
  const boot = bootOf(end.id);
  if (!boot.startsWith(bootPrefix(bootId(), null))) return null;
  if (unit !== undefined)
    return unit.endsWith('.service') ? serviceRunsSince(unit, end, boot) : null;
  return containerRunsSince(end, boot);
}

function serviceRunsSince(unit: string, { cgroup }: JournalExit, boot: string): Run | null {
  const args = ['show', '--property', PROPERTIES.join(), '--', unit];
  const { error, stdout } = spawnSync('systemctl', args, { encoding: 'utf8', timeout: TIMEOUT_MS });
  if (error !== undefined) return null; // there is no systemd
  const shown = new Map(
    stdout.split('\n').map((line) => line.split(/=(.*)/s, 2) as [string, string]),
  );
  // A user, a container or a machine may have a unit of this name, too.
  const group = shown.get('ControlGroup') ?? '';
  if (group === '' || cgroup === null || !`${cgroup}/`.startsWith(`${group}/`)) return null;
  if (!RUNNING.has(shown.get('ActiveState')) || ENDED.has(shown.get('SubState'))) return null;
  // Some are started again without having been inactive in between.
  const isDirect = shown.get('RestartMode') === 'direct';
  if (isDirect && shown.get('ActiveState') === 'activating') return null;
  const name = isDirect ? 'ExecMainStartTimestampMonotonic' : 'InactiveExitTimestampMonotonic';
  const monotonicMs = Number(shown.get(name)) / 1000;
  if (!(monotonicMs > 0)) return null;
  const agoMs = Number(process.hrtime.bigint()) / 1e6 - monotonicMs;
  const at = new Date(Date.now() - agoMs);
  return { at, moment: { bootId: boot, wallMs: at.getTime(), monotonicMs } };
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

function pids(): number[] {
  return readdirSync('/proc')
    .filter((name) => /^[1-9]\d*$/.test(name))
    .map(Number);
}

function textOf(pid: number, file: string): string | null {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8');
  } catch {
    return null; // it has ended
  }
}
