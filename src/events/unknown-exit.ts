import { NOWHERE } from '../where/whereabouts.js';

import type { ExitEvent, UnknownReason } from './exit-event.js';

/** What is known about a process whose outcome is unknown. */
export type KnownOfExit = Pick<
  ExitEvent,
  'id' | 'pid' | 'startedAt' | 'exitedAt' | 'uncertaintyMs' | 'source'
> &
  Partial<Pick<ExitEvent, 'parentPid' | 'name' | 'uid'>>;

/** The exit event of a process that is gone, with an unknown outcome. */
export function unknownExit(known: KnownOfExit, unknownReason: UnknownReason): ExitEvent {
  const { id, pid, startedAt, exitedAt, uncertaintyMs, source } = known;
  const { parentPid = null, name = null, uid = null } = known;
  return {
    event: 'exit',
    id,
    pid,
    parentPid,
    parentName: null,
    name,
    program: null,
    commandLine: null,
    uid,
    cgroup: null,
    ...NOWHERE,
    startedAt,
    exitedAt,
    exitedNs: null,
    uncertaintyMs,
    source,
    isRepeated: false,
    lossless: true,
    traced: false,
    tracedSince: null,
    requestsSince: null,
    sender: null,
    raisedAfter: null,
    signalsReceived: [],
    oom: null,
    usage: null,
    how: 'unknown',
    exitCode: null,
    signal: null,
    coreDumped: null,
    unknownReason,
  };
}
