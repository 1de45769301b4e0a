import { requestBefore } from '../../events/ended-by.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { Ancestor, OnBehalfReason, SignalSender } from '../../events/signal-event.js';
import type { Whereabouts } from '../../where/whereabouts.js';

import { escapeText } from './escape.js';
import { wordsFor } from './words.js';

const BY_ITSELF: Partial<Record<SignalSender['origin'], string>> = {
  fault: 'itself (fault)',
  timer: 'its own timer',
  kernel: 'kernel',
};

/** The sender of a signal to the process with this pid, in a few words. */
export function describeSender(sender: SignalSender, pid: number): string {
  if (sender.pid === null) return wordsFor(BY_ITSELF, sender.origin);
  const who = sender.pid === pid ? 'itself' : describeWithCommand(sender);
  return sender.origin === 'kill' ? who : `${who} (${sender.origin})`;
}

/** By its command line if that is known, otherwise by its name. */
function describeWithCommand(sender: SignalSender & { pid: number }): string {
  const { pid, commandLine } = sender;
  return commandLine === null ? describeProcess(sender) : `${pid} ${describeCommand(commandLine)}`;
}

/** A command line as one would type it. */
export function describeCommand(args: readonly string[]): string {
  return escapeText(args.map(quoted).join(' '));
}

/** As for a shell, if it needs that. */
function quoted(arg: string): string {
  if (/^[\w@%+=:,./…*-]+$/.test(arg)) return arg;
  return `'${arg.replaceAll("'", `'\\''`)}'`;
}

export function describeProcess({ pid, name }: Ancestor): string {
  return `${pid} ${escapeText(name)}`;
}

/** Where a process runs, in a few words, the innermost place first. */
export function describePlace({
  cgroup,
  unit,
  container,
  pod,
  machine,
}: Whereabouts & { cgroup: string | null }): string {
  const isScopeOf = (id: string) => unit?.endsWith(`${id}.scope`) === true;
  const places = [
    container === null ? null : `container ${container.name ?? container.id.slice(0, 12)}`,
    pod === null ? null : `pod ${pod.uid.slice(0, 8)}`,
    machine === null ? null : `machine ${machine.name}`,
    // The unit of a container is named like it.
    unit === null || (container !== null && isScopeOf(container.id)) ? null : `unit ${unit}`,
  ].filter((place) => place !== null);
  if (places.length > 0) return escapeText(places.join(', '));
  return cgroup === null ? 'cgroup unknown' : `cgroup ${escapeText(cgroup)}`;
}

const ON_BEHALF: Record<OnBehalfReason, string> = {
  'service-manager': 'systemctl, a shutdown, a timer',
  'container-runtime': 'docker, kubectl, podman, crictl',
  kubelet: 'kubectl, a controller of Kubernetes',
  'machine-manager': 'virsh, a management program',
  supervisor: 'its own command, its configuration',
};

/** Who may be behind a sender that acts for others; `null`: it does not. */
export function describeOnBehalf(sender: SignalSender): string | null {
  if (sender.pid === null || sender.onBehalfReason === null) return null;
  return `${escapeText(sender.name)} acts for others: ${wordsFor(ON_BEHALF, sender.onBehalfReason)}`;
}

/** The sender was not seen, though there may be one. */
export const NOT_SEEN = '?';

/** Who killed a process or asked it to exit, in a few words: the BY column. */
export function describeKiller(event: ExitEvent): string {
  if (event.oom === true) return 'kernel (out of memory)';
  if (event.raisedAfter !== null) return `itself, ${describeRequest(event.raisedAfter, event.pid)}`;
  if (event.sender !== null) return describeSender(event.sender, event.pid);
  if (event.signal !== null) return event.traced ? 'nobody' : NOT_SEEN;
  const request = requestBefore(event);
  if (request !== null) return describeRequest(request, event.pid);
  return event.traced ? '-' : NOT_SEEN;
}

function describeRequest(request: SignalSender, pid: number): string {
  return `after ${request.signal} from ${describeSender(request, pid)}`;
}
