import { NamePattern } from '../common/name-pattern.js';
import type { OnBehalfReason } from '../events/signal-event.js';

import { scriptOf } from './scripts.js';

const CONTAINER_CLIENTS = [
  ...['docker', 'docker-compose', 'podman', 'podman-compose', 'nerdctl', 'kubectl', 'crictl'],
  ...['ctr', 'buildah', 'lxc', 'incus'],
];

/** What asks a program of this kind to end processes. */
const CLIENTS: Readonly<Record<OnBehalfReason, NamePattern>> = {
  'service-manager': new NamePattern([
    ...['systemctl', 'systemd-run', 'loginctl', 'machinectl', 'busctl', 'service', 'shutdown'],
    ...['reboot', 'poweroff', 'halt', 'telinit'],
  ]),
  'container-runtime': new NamePattern(CONTAINER_CLIENTS),
  kubelet: new NamePattern(CONTAINER_CLIENTS),
  'machine-manager': new NamePattern(['virsh', 'virt-*']),
  supervisor: new NamePattern([
    ...['supervisorctl', 'circusctl', 'pm2', 'sv', 's6-svc', 's6-rc', 'monit', 'nomad'],
    ...['process-compose', 'rc-service', 'exitwatch'],
  ]),
};

/** What these programs are told if they are only to look. */
const LOOKS: ReadonlySet<string> = new Set([
  ...['cat', 'describe', 'diff', 'events', 'explain', 'get', 'get-default', 'help', 'history'],
  ...['images', 'info', 'inspect', 'introspect', 'is-active', 'is-enabled', 'is-failed'],
  ...['is-system-running', 'jlist', 'list', 'list-dependencies', 'list-jobs', 'list-machines'],
  ...[
    'list-sessions',
    'list-sockets',
    'list-timers',
    'list-unit-files',
    'list-units',
    'logs',
    'ls',
  ],
  ...['monitor', 'port', 'ps', 'report', 'search', 'session-status', 'show', 'show-environment'],
  ...['state', 'stats', 'status', 'summary', 'tail', 'top', 'tree', 'user-status', 'version'],
  ...[
    'api-resources',
    'api-versions',
    'cluster-info',
    'dominfo',
    'domstate',
    'domstats',
    'dumpxml',
  ],
  ...['alive', 'daemon', 'doctor', 'memory', 'record', 'supervise', 'wait', 'watch', 'why'],
]);

/** What is between the name of a program and what it is told: `docker container inspect`. */
const SUBJECTS: ReadonlySet<string> = new Set([
  ...['compose', 'container', 'image', 'network', 'pod', 'service', 'system', 'vm', 'volume'],
]);

/** What may end something: an option before it may have a value that looks like a verb. */
const ENDS: ReadonlySet<string> = new Set([
  ...['apply', 'cancel', 'delete', 'destroy', 'down', 'drain', 'evict', 'exit', 'force-reload'],
  ...['halt', 'isolate', 'kexec', 'kill', 'kill-session', 'kill-user', 'managedsave', 'migrate'],
  ...['patch', 'poweroff', 'powerdown', 'reboot', 'reload', 'reload-or-restart', 'remove'],
  ...['replace', 'reset', 'restart', 'rm', 'rollout', 'save', 'scale', 'shutdown', 'signal'],
  ...['soft-reboot', 'stop', 'suspend', 'terminate', 'try-restart', 'undefine', 'up', 'update'],
]);

/** Whether a program that was called like this only looks, and so has asked nobody to end anything. */
export function onlyLooks(commandLine: readonly string[] | null): boolean {
  const words = commandLine?.slice(1).filter((word) => !word.startsWith('-')) ?? [];
  if (words.some((word) => ENDS.has(word))) return false;
  const [first = '', second = ''] = words;
  return LOOKS.has(SUBJECTS.has(first) ? second : first);
}

const ALL = Object.values(CLIENTS);
const NAMES: ReadonlySet<string> = new Set(ALL.flatMap(({ literals }) => literals ?? []));
const PATTERNS = ALL.filter(({ literals }) => literals === null);

/** The names that were asked for, and the most of them to remember: each end has two. */
const known = new Map<string, boolean>();
const MOST_KNOWN = 1024;

/** Whether a program of this name asks programs that act for others, of whatever kind. */
export function isClient(name: string): boolean {
  let answer = known.get(name);
  if (answer === undefined) {
    answer = NAMES.has(name) || PATTERNS.some((clients) => clients.matches([name]));
    if (known.size >= MOST_KNOWN) known.clear();
    known.set(name, answer);
  }
  return answer;
}

/**
 * Whether a process with one of these names may have asked a sender that acts for others. Of a
 * reason that a later version knows, nobody is known.
 */
export function isClientOf(reason: OnBehalfReason, names: readonly string[]): boolean {
  return Object.hasOwn(CLIENTS, reason) && CLIENTS[reason].matches(names);
}

/**
 * The name of the client that a process is by one of its names, or that a script is which it runs.
 * `null`: it is none, or only looks.
 */
export function clientIn(
  names: readonly (string | null)[],
  commandLine: readonly string[] | null,
): string | null {
  const known = names.filter((name) => name !== null);
  const own = known.find(isClient);
  if (own !== undefined) return onlyLooks(commandLine) ? null : own;
  const script = commandLine && scriptOf(known, commandLine);
  if (script === null || !isClient(script.name)) return null;
  return onlyLooks(script.commandLine) ? null : script.name;
}
