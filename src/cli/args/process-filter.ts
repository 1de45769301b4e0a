import { spawnSync } from 'node:child_process';

import type { ExitEvent } from '../../events/exit-event.js';
import type { SignalEvent } from '../../events/signal-event.js';

import { factsOf, KnownProcesses, type Facts } from './known-processes.js';
import { NamePattern } from './name-pattern.js';
import { UsageError } from './usage-error.js';

/** Which processes are meant: of each list, any; an empty list, all. */
export interface ProcessCriteria {
  names: readonly string[];
  uids: readonly number[];
  cgroups: readonly string[];
  parents: readonly number[];
}

/** What is known of a process: `null` where nothing is. */
interface Profile {
  names: string[] | null;
  uid: number | null;
  cgroup: string | null;
  parentPid: number | null;
}

/** Matches processes by what they are, whether they were there at the beginning or came later. */
export class ProcessFilter {
  readonly #criteria: ProcessCriteria;
  readonly #pattern: NamePattern;
  readonly #known: KnownProcesses | undefined;
  /** Ends of processes of which too little is known to tell whether they match. */
  untold = 0;

  /** @throws UsageError */
  constructor(criteria: ProcessCriteria) {
    this.#criteria = criteria;
    this.#pattern = new NamePattern(criteria.names);
    const isNarrow = Object.values(criteria).some((list: readonly unknown[]) => list.length > 0);
    this.#known = isNarrow ? new KnownProcesses() : undefined;
  }

  /** Of one that has ended: nothing more will be known of it. */
  matches(event: ExitEvent): boolean {
    if (this.#known === undefined) return true;
    const verdict = this.#judge(profileOf(event, this.#known.take(event)));
    // With its program, the kernel tells all of it.
    if (event.program !== null) this.#known.close();
    if (verdict === null) this.untold++;
    return verdict === true;
  }

  /** Of the process that gets a signal, which may still be looked at; `null`: its end will tell. */
  matchesTarget(event: SignalEvent): boolean | null {
    if (this.#known === undefined) return true;
    const facts = this.#known.of(event) ?? factsOf(event.pid) ?? undefined;
    const nothing = { program: null, uid: null, cgroup: null, parentPid: null };
    const profile = profileOf({ name: event.name, ...nothing }, facts);
    // Its program may match, where its name does not.
    const isAmbiguous = facts === undefined && !this.#pattern.matches([event.name]);
    return this.#judge(isAmbiguous ? { ...profile, names: null } : profile);
  }

  /** Of one that has ended, and is not asked about. */
  forget(event: ExitEvent): void {
    this.#known?.take(event);
  }

  /** Ends were lost. */
  onGap(): void {
    this.#known?.lookAnew();
  }

  close(): void {
    this.#known?.close();
  }

  /** `null`: it cannot be event. */
  #judge({ names, uid, cgroup, parentPid }: Profile): boolean | null {
    const { names: globs, uids, cgroups, parents } = this.#criteria;
    const verdicts = [
      globs.length === 0 || (names === null ? null : this.#pattern.matches(names)),
      uids.length === 0 || (uid === null ? null : uids.includes(uid)),
      cgroups.length === 0 ||
        (cgroup === null ? null : cgroups.some((wanted) => isIn(cgroup, wanted))),
      parents.length === 0 || (parentPid === null ? null : parents.includes(parentPid)),
    ];
    if (verdicts.includes(false)) return false;
    return verdicts.includes(null) ? null : true;
  }
}

type EventFacts = Pick<ExitEvent, 'name' | 'program' | 'uid' | 'cgroup' | 'parentPid'>;

/** The event's word counts more: it is the later one. */
function profileOf(event: EventFacts, facts: Facts | undefined): Profile {
  const names = [event.name, event.program ?? facts?.executable].filter(
    (name) => typeof name === 'string',
  );
  return {
    names: names.length === 0 ? null : names,
    uid: event.uid ?? facts?.uid ?? null,
    cgroup: event.cgroup ?? facts?.cgroup ?? null,
    parentPid: event.parentPid ?? facts?.parentPid ?? null,
  };
}

/** A path from the root is meant with all below it; anything else, wherever it is. */
function isIn(cgroup: string, wanted: string): boolean {
  const path = `${cgroup}/`.replaceAll('//', '/');
  return wanted.startsWith('/') ? path.startsWith(`${wanted}/`) : path.includes(`/${wanted}/`);
}

/** A cgroup as `--cgroup` takes it: also by its folder in /sys/fs/cgroup. */
export function parseCgroup(text: string): string {
  return text.replace(/^\/sys\/fs\/cgroup(\/unified)?(?=\/|$)/, '').replace(/\/+$/, '');
}

/** The id of a user, who may be named. @throws UsageError */
export function parseUser(text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  const { stdout, status } = spawnSync('id', ['-u', '--', text], { encoding: 'utf8' });
  const uid = status === 0 ? stdout.trim() : '';
  if (/^\d+$/.test(uid)) return Number(uid);
  throw new UsageError(`there is no user ${JSON.stringify(text)}`);
}
