import { NamePattern } from '../common/name-pattern.js';
import type { OnBehalfReason } from '../events/signal-event.js';

const CONTAINER_CLIENTS = [
  ...['docker', 'docker-compose', 'podman', 'podman-compose', 'nerdctl', 'kubectl', 'crictl'],
  ...['ctr', 'runc', 'crun', 'youki', 'buildah', 'lxc', 'incus'],
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

/**
 * Whether a process with one of these names may have asked a sender that acts for others. Of a
 * reason that a later version knows, nobody is known.
 */
export function isClientOf(reason: OnBehalfReason, names: readonly string[]): boolean {
  return Object.hasOwn(CLIENTS, reason) && CLIENTS[reason].matches(names);
}
