import type { OnBehalfReason } from '../events/signal-event.js';

/** What programs that act for others call themselves, cut to what the kernel keeps of a name. */
const AGENTS: ReadonlyMap<string, OnBehalfReason> = new Map([
  ['systemd', 'service-manager'],
  ['systemd-logind', 'service-manager'],
  ['systemd-machine', 'service-manager'], // systemd-machined
  ['dockerd', 'container-runtime'],
  ['containerd', 'container-runtime'],
  ['containerd-shim', 'container-runtime'],
  ['conmon', 'container-runtime'],
  ['crio', 'container-runtime'],
  ['lxd', 'container-runtime'],
  ['incusd', 'container-runtime'],
  ['kubelet', 'kubelet'],
  ['libvirtd', 'machine-manager'],
  ['virtqemud', 'machine-manager'],
  ['virtlxcd', 'machine-manager'],
  ['circusd', 'supervisor'],
  ['exitwatch-keepr', 'supervisor'],
  ['monit', 'supervisor'],
  ['nomad', 'supervisor'],
  ['process-compose', 'supervisor'],
  ['runsv', 'supervisor'],
  ['s6-supervise', 'supervisor'],
  ['supervise-daemo', 'supervisor'], // supervise-daemon of OpenRC
  ['supervisord', 'supervisor'],
]);

/** PM2 names its daemon `PM2 v6.0.5: God Daemon (/root/.pm2)`. */
const PM2 = /^PM2 v\d/;

/** They do what the program that runs them wants. */
const TOOLS: ReadonlySet<string> = new Set(['crun', 'runc', 'youki']);

interface Sender {
  pid: number;
  name: string;
  unit: string | null;
  ancestors: readonly { name: string }[];
}

/**
 * Why the sender of a signal probably does what another process asked it for; `null`: nothing speaks
 * for that. It is judged by names, which anybody may give himself; systemd must be where only a
 * systemd is, too.
 */
export function onBehalfReason({ pid, name, unit, ancestors }: Sender): OnBehalfReason | null {
  if (name === 'systemd') return pid === 1 || unit === 'init.scope' ? 'service-manager' : null;
  if (TOOLS.has(name)) return agentOf(ancestors[0]?.name ?? '');
  return agentOf(name);
}

function agentOf(name: string): OnBehalfReason | null {
  return AGENTS.get(name) ?? (PM2.test(name) ? 'supervisor' : null);
}
