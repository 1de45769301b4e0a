import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { ExitEvent, SignalSender } from '../../src';
import { type JournalQuery, type JournalRow, JournalWriter, readJournal } from '../../src/journal';
import { NOWHERE, whereaboutsOf } from '../../src/where/whereabouts';

/** A folder that is removed with all it has. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'exitwatch-journal-'));

  get journal(): string {
    return join(this.path, 'journal');
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true });
  }
}

/** The stem of the files of the first segment. */
export const FIRST = '0000000000000001';

const CGROUP = '/system.slice/web.service';

const START_MS = Date.parse('2026-11-24T03:00:00Z');

/** The i-th of a series of ends, one each second; for what is stored, not for what the kernel says. */
export function endOf(i: number, more: Partial<ExitEvent> = {}): ExitEvent {
  const exitedAt = new Date(START_MS + i * 1000);
  return {
    ...{ event: 'exit', id: `8a68af16253b-${1000 + i}-${46497757 + i}`, pid: 1000 + i },
    ...{ parentPid: 1, name: 'sh', program: 'dash', uid: 0, cgroup: CGROUP },
    ...{ startedAt: new Date(exitedAt.getTime() - 500), exitedAt, exitedNs: 5e13 + i * 1e9 },
    ...{ uncertaintyMs: 0, source: 'connector', isRepeated: false, lossless: true, traced: true },
    tracedSince: new Date(exitedAt.getTime() - 500),
    requestsSince: new Date(exitedAt.getTime() - 500),
    ...{ sender: null, raisedAfter: null },
    ...{ signalsReceived: [], oom: false, how: 'exited', exitCode: 0, signal: null },
    ...{ coreDumped: false, unknownReason: null, parentName: null, usage: null },
    commandLine: null,
    ...whereaboutsOf(more.cgroup === undefined ? CGROUP : more.cgroup),
    ...more,
  } as ExitEvent;
}

/** An end by a signal from this process. Earlier versions did not write when it had started. */
export function killedBy(
  name: string,
  pid: number,
  i: number,
  startedAt: Date | null = null,
): Partial<ExitEvent> {
  const sentAt = new Date(START_MS + i * 1000 - 1);
  return {
    ...{ how: 'killed', exitCode: null, signal: 'SIGTERM' },
    sender: {
      ...{ signal: 'SIGTERM', sentAt, origin: 'kill', pid, name, uid: 1000 },
      ...{ startedAt, cgroup: '/user.slice' },
      ...{ commandLine: null, onBehalf: false, onBehalfReason: null },
      ...{ likelyClients: null, unit: null, container: null },
      ...{ program: name, pod: null, machine: null },
      ancestors: [{ pid: pid - 1, name: 'bash', cgroup: '/user.slice', ...NOWHERE }],
    } as SignalSender,
  };
}

export async function rowsOf(query: JournalQuery): Promise<JournalRow[]> {
  const rows: JournalRow[] = [];
  for await (const row of readJournal(query)) rows.push(row);
  return rows;
}

/** The numbers of the rows that a query finds. */
export async function found(query: JournalQuery): Promise<number[]> {
  return (await rowsOf(query)).map(({ seq }) => seq);
}

/** The files of a journal. */
export function filesIn(dir: string): string[] {
  return readdirSync(dir).sort();
}

export function textOf(dir: string, name: string): string {
  return readFileSync(join(dir, name), 'utf8');
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, i) => from + i);
}

/** Writes ends of a series to a journal, in segments of about a hundred. */
export async function write(dir: string, ends: readonly ExitEvent[], more = {}): Promise<void> {
  await using journal = new JournalWriter({ dir, segmentBytes: 64 * 1024, ...more });
  for (const [i, end] of ends.entries()) {
    journal.append(end);
    if (i % 50 === 49) await journal.flush();
  }
}
