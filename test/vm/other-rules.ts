import type { QmpEvent, VmVerdict } from '../../src/vm';

import type { Scenario } from './scenarios';

/** Ganeti's kvmd: a SHUTDOWN is the user's unless there ever was a POWERDOWN or a STOP. */
function ganeti(events: readonly QmpEvent[]): boolean {
  const has = (name: string) => events.some(({ event }) => event === name);
  return has('SHUTDOWN') && !has('POWERDOWN') && !has('STOP');
}

/** Proxmox's qmeventd uses the last SHUTDOWN. */
function proxmox(events: readonly QmpEvent[]): string {
  const last = events.filter(({ event }) => event === 'SHUTDOWN').at(-1);
  if (last === undefined) return 'crashed';
  return last.data['guest'] === true ? 'guest' : 'host';
}

/** libvirt uses the first SHUTDOWN and its side. */
function libvirt(events: readonly QmpEvent[]): string {
  const first = events.find(({ event }) => event === 'SHUTDOWN');
  if (first === undefined) return 'crashed';
  return first.data['guest'] === true ? 'shut down (guest)' : 'shut down (host)';
}

/** The first rows of the table in docs/vm-comparison.md. */
export const HEADER = [
  "| what happened | exitwatch | the user's own | Ganeti's kvmd | Proxmox's qmeventd | libvirt |",
  '| --- | --- | --- | --- | --- | --- |',
];

/** A row of the table in docs/vm-comparison.md, with wrong verdicts in bold. */
export function compare(scenario: Scenario, stop: VmVerdict, events: readonly QmpEvent[]): string {
  const mark = (text: string, isUser: boolean) =>
    isUser === scenario.userShutdown ? text : `**${text}**`;
  const user = ganeti(events);
  const guest = proxmox(events);
  const side = libvirt(events);
  return `| ${[
    scenario.name,
    `${stop.cause} (${stop.certainty})`,
    stop.userShutdown === true ? 'yes' : 'no',
    mark(user ? 'user' : 'not the user', user),
    mark(guest, guest === 'guest'),
    mark(side, side === 'shut down (guest)'),
  ].join(' | ')} |`;
}
