import { spawnSync } from 'node:child_process';

import { globPattern, NamePattern } from '../../common/name-pattern.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { SignalEvent } from '../../events/signal-event.js';
import type { LocationReason } from '../../where/location.js';
import { ownedName, ownedText } from '../../where/owned-name.js';
import { isInContainer, isInUnit, unitsOf, whereaboutsOf } from '../../where/whereabouts.js';

import { factsOf, KnownProcesses, type Facts } from './known-processes.js';
import { UsageError } from './usage-error.js';

/** systemd.unit(5) */
const UNIT_SUFFIX =
  /\.(?:service|socket|device|mount|automount|swap|target|path|timer|slice|scope)$/;

const TELLS_NO_UNIT: readonly LocationReason[] = [
  ...(['no-path', 'not-a-path', 'root', 'outside-namespace'] as const),
];
/** With v1 hierarchies, what runs in a container may have the cgroup of its runtime. */
const TELLS_NO_CONTAINER: readonly LocationReason[] = [...TELLS_NO_UNIT, 'runtime-unit'];

const FIRST_DIGITS = /^[0-9a-f]{4,64}$/;

/** Whether what runs in this cgroup is selected; `null`: the cgroup does not tell. */
export type CgroupMatcher = (cgroup: string | null) => boolean | null;

/** The same; the container is the one that was found when the process ran: it may be gone by now. */
export type ContainerMatcher = (place: Pick<ExitEvent, 'cgroup' | 'container'>) => boolean | null;

/** Which processes to select: any item of each list; an empty list matches all. */
export interface ProcessCriteria {
  names: readonly string[];
  uids: readonly number[];
  cgroups: readonly string[];
  units: readonly string[];
  containers: readonly string[];
  parents: readonly number[];
}

/** What is known about a process; `null` where nothing is known. */
interface Profile {
  names: string[] | null;
  uid: number | null;
  cgroup: string | null;
  container: ExitEvent['container'];
  parentPid: number | null;
}

/** Matches processes, whether they existed at the start or came later. */
export class ProcessFilter {
  readonly #criteria: ProcessCriteria;
  readonly #pattern: NamePattern;
  readonly #isInUnit: CgroupMatcher;
  readonly #isInContainer: ContainerMatcher;
  readonly #known: KnownProcesses | undefined;
  /** Exits of processes about which too little was known to match them. */
  untold = 0;

  /** @throws UsageError */
  constructor(criteria: ProcessCriteria) {
    this.#criteria = criteria;
    this.#pattern = new NamePattern(criteria.names);
    this.#isInUnit = unitMatcher(criteria.units);
    this.#isInContainer = containerMatcher(criteria.containers);
    const isNarrow = Object.values(criteria).some((list: readonly unknown[]) => list.length > 0);
    this.#known = isNarrow ? new KnownProcesses() : undefined;
  }

  /** For a process that has exited: nothing more will become known about it. */
  matches(event: ExitEvent): boolean {
    if (this.#known === undefined) return true;
    const verdict = this.#judge(profileOf(event, this.#known.take(event)));
    // An event with a program has everything from the kernel: further looks are not needed.
    if (event.program !== null) this.#known.close();
    if (verdict === null) this.untold++;
    return verdict === true;
  }

  /** For the process that receives a signal, which may still exist; `null`: its exit will show. */
  matchesTarget(event: SignalEvent): boolean | null {
    if (this.#known === undefined) return true;
    const facts = this.#known.of(event) ?? factsOf(event.pid) ?? undefined;
    const nothing = { program: null, uid: null, cgroup: null, container: null, parentPid: null };
    const profile = profileOf({ name: event.name, ...nothing }, facts);
    // Its program may match even if its name does not.
    const isAmbiguous = facts === undefined && !this.#pattern.matches([event.name]);
    return this.#judge(isAmbiguous ? { ...profile, names: null } : profile);
  }

  /** For a process that has exited and need not be matched. */
  forget(event: ExitEvent): void {
    this.#known?.take(event);
  }

  /** Call this when exits were lost. */
  onGap(): void {
    this.#known?.lookAnew();
  }

  /** Events may have less from now on. */
  onSource(): void {
    this.#known?.goOn();
  }

  close(): void {
    this.#known?.close();
  }

  /** `null`: too little is known. */
  #judge({ names, uid, cgroup, container, parentPid }: Profile): boolean | null {
    const { names: globs, uids, cgroups, parents, units, containers } = this.#criteria;
    const verdicts = [
      globs.length === 0 || (names === null ? null : this.#pattern.matches(names)),
      uids.length === 0 || (uid === null ? null : uids.includes(uid)),
      cgroups.length === 0 ||
        (cgroup === null ? null : cgroups.some((wanted) => isIn(cgroup, wanted))),
      units.length === 0 || this.#isInUnit(cgroup),
      containers.length === 0 || this.#isInContainer({ cgroup, container }),
      parents.length === 0 || (parentPid === null ? null : parents.includes(parentPid)),
    ];
    if (verdicts.includes(false)) return false;
    return verdicts.includes(null) ? null : true;
  }
}

type EventFacts = Pick<
  ExitEvent,
  'name' | 'program' | 'uid' | 'cgroup' | 'container' | 'parentPid'
>;

/** Prefers what the event says, because it is newer. */
function profileOf(event: EventFacts, facts: Facts | undefined): Profile {
  const names = [event.name, event.program ?? facts?.executable].filter(
    (name) => typeof name === 'string',
  );
  const cgroup = event.cgroup ?? facts?.cgroup ?? null;
  return {
    names: names.length === 0 ? null : names,
    uid: event.uid ?? facts?.uid ?? null,
    cgroup,
    // The event has the name that was found when the container was there.
    container: event.cgroup === null ? whereaboutsOf(cgroup).container : event.container,
    parentPid: event.parentPid ?? facts?.parentPid ?? null,
  };
}

/** Selects what is in such a unit, or in something below it: globs, with or without `.service`; `UID:GLOB` for a user's. */
export function unitMatcher(globs: readonly string[]): CgroupMatcher {
  const wanted = globs.map((glob) => {
    const { uid, name } = ownedName(unitName(glob));
    return { uid, pattern: globPattern(name) };
  });
  return (cgroup) => {
    const { reason } = unitsOf(cgroup);
    const isIt = ({ uid, pattern }: (typeof wanted)[number]) =>
      isInUnit(cgroup, uid, (name) => pattern.test(name));
    if (wanted.some(isIt)) return true;
    return reason !== null && TELLS_NO_UNIT.includes(reason) ? null : false;
  };
}

/** As systemctl(1) takes them: `nginx` is `nginx.service`. */
export function unitName(glob: string): string {
  return UNIT_SUFFIX.test(glob) || hasWildcards(glob) ? glob : `${glob}.service`;
}

export function hasWildcards(glob: string): boolean {
  return /[*?[]/.test(glob);
}

/** The value of `--user-unit`: of our own user's manager. */
export function ownUnit(glob: string): string {
  return ownedText({ uid: process.getuid?.() ?? 0, name: unitName(glob) });
}

/**
 * Selects what is in such a container, or in one inside it: by the first digits of its id (`UID:ID` for one that a user
 * runs) or, for the innermost, by its name, a glob.
 */
export function containerMatcher(texts: readonly string[]): ContainerMatcher {
  const names = texts.map(globPattern);
  const ids = texts.map(ownedName).filter(({ name }) => FIRST_DIGITS.test(name));
  return (place) => {
    const { cgroup, container } = place;
    if (container === null) {
      const { reason } = unitsOf(cgroup);
      return reason !== null && TELLS_NO_CONTAINER.includes(reason) ? null : false;
    }
    if (ids.some(({ uid, name }) => isInContainer(place, uid, (id) => id.startsWith(name)))) {
      return true;
    }
    const { name } = container;
    return name === null ? null : names.some((pattern) => pattern.test(name));
  };
}

/** An absolute path includes everything below it; any other path matches at any depth. */
export function isIn(cgroup: string, wanted: string): boolean {
  if (wanted === '/') return true;
  const path = `${cgroup}/`.replaceAll('//', '/');
  return wanted.startsWith('/') ? path.startsWith(`${wanted}/`) : path.includes(`/${wanted}/`);
}

/** The value of `--cgroup`; also accepts the folder in /sys/fs/cgroup. */
export function parseCgroup(text: string): string {
  const path = text.replace(/^\/sys\/fs\/cgroup(\/unified)?(?=\/|$)/, '').replace(/\/+$/, '');
  return path === '' && text !== '' ? '/' : path;
}

/** The id of a user, given by id or name. @throws UsageError */
export function parseUser(text: string): number {
  if (/^\d{1,10}$/.test(text)) return Number(text);
  const { stdout, status } = spawnSync('id', ['-u', '--', text], { encoding: 'utf8' });
  const uid = status === 0 ? stdout.trim() : '';
  if (/^\d+$/.test(uid)) return Number(uid);
  throw new UsageError(`unknown user ${JSON.stringify(text)}`);
}
