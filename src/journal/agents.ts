/** Programs that end processes because others ask them to, and the programs that ask. */
const CLIENTS: Readonly<Record<string, readonly string[]>> = {
  systemd: [
    ...['systemctl', 'systemd-run', 'loginctl', 'machinectl', 'shutdown', 'reboot', 'poweroff'],
    ...['halt', 'telinit', 'service', 'busctl'],
  ],
  dockerd: ['docker', 'docker-compose', 'docker-init'],
  containerd: ['ctr', 'nerdctl', 'crictl', 'docker', 'kubectl'],
  'containerd-shim': ['docker', 'docker-compose', 'ctr', 'nerdctl', 'crictl', 'kubectl'],
  runc: ['docker', 'docker-compose', 'ctr', 'nerdctl', 'crictl', 'podman', 'kubectl'],
  crun: ['podman', 'docker', 'crictl', 'kubectl'],
  conmon: ['podman', 'crictl', 'kubectl'],
  crio: ['crictl', 'kubectl'],
  kubelet: ['kubectl', 'crictl'],
  libvirtd: ['virsh', 'virt-manager'],
  virtqemud: ['virsh', 'virt-manager'],
  virtlxcd: ['virsh'],
};

/** The kernel's names are cut, and shims have a version: `containerd-shim-runc-v2`. */
const SHIM = 'containerd-shim';

/** Everything descends from it, so it acts for others only if it is the sender itself. */
const INIT = 'systemd';

/**
 * The program that acts for others when this process, whose parents have these names, sends a signal; `null`: it is
 * none.
 */
export function agentOf(name: string, parents: readonly string[]): string | null {
  const plain = (each: string) => (each.startsWith(SHIM) ? SHIM : each);
  const names = [name, ...parents.filter((each) => each !== INIT)].map(plain);
  return names.find((each) => Object.hasOwn(CLIENTS, each)) ?? null;
}

/** Whether a process with one of these names asks this program. */
export function isClientOf(agent: string, names: readonly string[]): boolean {
  return CLIENTS[agent]?.some((client) => names.includes(client)) === true;
}
