import { hasSeenRequests, requestBefore } from '../../events/ended-by.js';
import type { ExitEvent } from '../../events/exit-event.js';
import type { OnBehalfReason, SignalSender } from '../../events/signal-event.js';
import { grammarOf } from '../../process/interpreters.js';
import { SHORT_ID } from '../../journal/terms.js';
import type { CgroupContainer } from '../../where/location.js';
import { ownedText } from '../../where/owned-name.js';
import { containerIdsOf, ownersOf, type Whereabouts } from '../../where/whereabouts.js';

import { commandForms, isCalledTruly, MULTI_CALL } from './command-text.js';
import { escapeText } from './escape.js';
import { span } from './times.js';
import { wordsFor } from './words.js';

/** The first one says everything. */
type Forms = [string, ...string[]];

const BY_ITSELF: Partial<Record<SignalSender['origin'], string>> = {
  fault: 'itself (fault)',
  timer: 'its own timer',
  kernel: 'kernel',
};

/** The sender of a signal to the process with this pid, in a few words. */
export function describeSender(sender: SignalSender, pid: number): string {
  return senderForms(sender, pid)[0];
}

/** The same, and then in fewer words. */
function senderForms(sender: SignalSender, pid: number): Forms {
  if (sender.pid === null) return [wordsFor(BY_ITSELF, sender.origin)];
  const names = sender.pid === pid ? ['itself'] : whoForms(sender);
  const how = sender.origin === 'kill' ? '' : ` (${sender.origin})`;
  return names.map((who) => who + how) as Forms;
}

/** The same in a sentence: `bash deploy.sh (pid 974, uid 0)`. */
export function nameKiller(sender: SignalSender, pid: number): string {
  if (sender.pid === null) return wordsFor(IN_SENTENCE, sender.origin);
  if (sender.pid === pid) return 'itself';
  const { commandLine, uid } = sender;
  const known = { ...sender, uid: null };
  const forms =
    commandLine === null ? [describeBestNames(sender)] : commandForms(commandLine, known);
  const [whole = ''] = forms;
  const what = whole.length <= LONGEST ? whole : (forms.find(isShort) ?? cut(whole));
  return `${what} (pid ${sender.pid}, uid ${uid})`;
}

const IN_SENTENCE: Partial<Record<SignalSender['origin'], string>> = {
  fault: 'a fault of its own',
  timer: 'its own timer',
  kernel: 'the kernel',
};

/** How much of a command line a sentence has. */
const LONGEST = 60;
const isShort = (form: string) => form.length <= LONGEST;
const cut = (form: string) => `${form.slice(0, LONGEST - 1)}…`;

/** By its command line if that is known, otherwise by its names. */
function whoForms(sender: SignalSender & { pid: number }): string[] {
  const { pid, commandLine } = sender;
  const forms =
    commandLine === null ? [describeBestNames(sender)] : commandForms(commandLine, sender);
  return forms.map((what) => `${pid} ${what}`);
}

/** Node.js 24 and later name the thread that runs main(), and thus the process, so. */
const MAIN_THREAD = 'MainThread';

/** Whether the name says more than the program: that of a script, or of a shell as it was called. */
export function isBetterKnown(name: string, program: string): boolean {
  if (name === MAIN_THREAD) return false;
  return MULTI_CALL.test(program) || grammarOf(program) !== null;
}

/** The name of a sender, plus its program if that adds something: a process can choose its name. */
export function describeBestNames({
  name,
  program,
}: {
  name: string;
  program: string | null;
}): string {
  const isEnough = program === null || isCalledTruly(name, { name, program });
  return describeNames({ name, program: isEnough ? null : program }) ?? '';
}

/**
 * The name of a process, plus the program in parentheses if it adds something: `MainThread (node)`.
 * `null`: neither is known.
 */
export function describeNames({
  name,
  program,
}: Pick<ExitEvent, 'name' | 'program'>): string | null {
  if (program === null) return name === null ? null : escapeText(name);
  if (name === null || name === '') return escapeText(program);
  if (program.startsWith(name)) return escapeText(isCut(name) ? program : name);
  return `${escapeText(name)} (${escapeText(program)})`;
}

/** The kernel truncates names to 15 bytes. */
function isCut(name: string): boolean {
  return Buffer.byteLength(name) >= 15;
}

export function describeProcess({ pid, name }: { pid: number; name: string }): string {
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
  const uids = ownersOf(cgroup);
  const shortId = (id: string) => id.slice(0, SHORT_ID);
  const nameOf = ({ id, name }: CgroupContainer) =>
    ownedText({ uid: uids.container, name: name ?? shortId(id) });
  // Whoever may make cgroups in one can give them any name.
  const around = containerIdsOf({ cgroup, container }).filter((id) => id !== container?.id);
  const places = [
    container === null ? null : `container ${nameOf(container)}`,
    ...around.map((id) => `container ${shortId(id)}`).reverse(),
    pod === null ? null : `pod ${pod.uid.slice(0, 8)}`,
    machine === null ? null : `machine ${machine.name}`,
    // The unit of a container is named like it.
    unit === null || (container !== null && isScopeOf(container.id))
      ? null
      : `unit ${ownedText({ uid: uids.unit, name: unit })}`,
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
  return killerForms(event)[0];
}

/** The same, and then in fewer words. */
export function killerForms(event: ExitEvent): Forms {
  const { pid, oom, raisedAfter, sender, signal, traced } = event;
  if (oom === true) return ['kernel (out of memory)'];
  if (raisedAfter !== null) {
    const requests = requestForms(raisedAfter, event).map((request) => `itself, ${request}`);
    return [...requests, ...senderForms(raisedAfter, pid)] as Forms;
  }
  if (sender !== null) return senderForms(sender, pid);
  if (signal !== null) return [traced ? 'nobody' : NOT_SEEN];
  const request = requestBefore(event);
  if (request === null) return [hasSeenRequests(event) ? '-' : NOT_SEEN];
  const shorter = senderForms(request, pid).map((who) => `after ${who}`);
  return [...requestForms(request, event), ...shorter] as Forms;
}

/** After what is so long ago something else may have happened. */
const LONG_MS = 10_000;

function requestForms(request: SignalSender, { pid, exitedAt }: ExitEvent): Forms {
  const agoMs = exitedAt.getTime() - request.sentAt.getTime();
  const when = agoMs < LONG_MS ? 'after' : `${span(agoMs)} after`;
  return senderForms(request, pid).map((who) => `${when} ${request.signal} from ${who}`) as Forms;
}
