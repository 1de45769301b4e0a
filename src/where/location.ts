/**
 * A unit of systemd, as the path of a cgroup names it.
 *
 * @see {@link locate}
 */
export type CgroupUnit = {
  /**
   * As `systemctl` prints and takes it: `nginx.service`, `dev-disk-by\x2duuid.swap`. It consists of
   * ASCII letters, digits and `:-_.\@`, and has at most 255 characters (systemd.unit(5)).
   */
  name: string;
  /** The slice that the unit is in; `-.slice`, the root slice, if the path has none. */
  slice: string;
  /** Whose unit it is: the system's, or that of a `user@UID.service` or `capsule@NAME.service`. */
  manager: 'system' | 'user' | 'capsule';
  /** The user in whose slice (`user-UID.slice`) or under whose manager it is; `null` if in neither. */
  uid: number | null;
  /** The login session of a `session-ID.scope`, and of what is in it. */
  session: string | null;
};

/**
 * What runs a container, as far as the path tells. `'containerd'`: its CRI plugin, or nerdctl.
 *
 * @see {@link locate}
 */
export type ContainerRuntime = 'docker' | 'containerd' | 'cri-o' | 'podman' | 'buildkit';

/**
 * A container.
 *
 * @see {@link locate}
 */
export type CgroupContainer = {
  /** `null`: its pod is known, but the path does not tell who runs it (kubelet's cgroupfs driver). */
  runtime: ContainerRuntime | null;
  /** 64 hexadecimal digits; BuildKit's ids have 25 digits and lower-case letters. */
  id: string;
  /**
   * `null` from {@link locate}, because no path has it. In an event it comes from the runtime's own
   * files; `null` if they do not tell it.
   */
  name: string | null;
};

/**
 * A pod of Kubernetes or Podman.
 *
 * @see {@link locate}
 */
export type CgroupPod = {
  manager: 'kubernetes' | 'podman';
  /**
   * Kubernetes: the uid in the pod's metadata. A static pod has 32 hexadecimal digits without
   * dashes. Podman: the pod's id, of 64 hexadecimal digits.
   */
  uid: string;
};

/**
 * A virtual machine, or a container that is like one.
 *
 * - `'libvirt'`: `id` is the number that `virsh list` shows, new at each start. libvirt leaves out of
 *   the name what a host name may not have, and cuts it, so that it fits into 64 characters with
 *   driver and id. Without systemd, an old libvirt leaves out the id
 * - `'proxmox'`: the name is the VMID. The driver of its containers is `'lxc'`
 * - `'lxc'`: LXC, LXD and Incus, which put a project's name before the name (`project_name`). LXC
 *   appends `-1` if an earlier cgroup of that name is left
 * - `'nspawn'`: systemd-nspawn
 * - `'machined'`: registered with systemd-machined, by whom is not known
 *
 * @see {@link locate}
 */
export type CgroupMachine =
  | { manager: 'libvirt'; driver: LibvirtDriver; id: number | null; name: string }
  | { manager: 'proxmox'; driver: 'qemu' | 'lxc'; name: string }
  | { manager: 'lxc' | 'nspawn' | 'machined'; name: string };

/**
 * A driver of libvirt that makes cgroups. `'ch'` is that of Cloud Hypervisor.
 *
 * @see {@link locate}
 */
export type LibvirtDriver = 'qemu' | 'lxc' | 'ch';

/**
 * One place that a path leads through. `'slice'`: the path ends in a slice, or goes on without a
 * unit. `'monitor'`: outside of the container or machine is the process that watches over it: conmon,
 * systemd-nspawn or `lxc-start`.
 *
 * @see {@link locate}
 */
export type CgroupPlace =
  | ({ kind: 'unit' } & CgroupUnit)
  | { kind: 'slice'; name: string }
  | ({ kind: 'container' } & CgroupContainer)
  | ({ kind: 'pod' } & CgroupPod)
  | ({ kind: 'machine' } & CgroupMachine)
  | {
      kind: 'monitor';
      of: ({ kind: 'container' } & CgroupContainer) | ({ kind: 'machine' } & CgroupMachine);
    };

/**
 * Why a path does not tell everything:
 *
 * - `'no-path'`: there is none
 * - `'not-a-path'`: it does not begin with a slash, or has more than 4096 characters
 * - `'root'`: the root of the hierarchy. On a host with v1 hierarchies, everything may be there
 * - `'outside-namespace'`: it begins with `..`: where the process is, the cgroup namespace hides. A
 *   unit is not told then
 * - `'slice'`: a slice itself. A v1 hierarchy often ends there, and the unit is in another one
 * - `'runtime-unit'`: the unit of a container runtime or a hypervisor's manager, such as
 *   `containerd.service`. Its daemons are there; with v1 hierarchies, also what its containers run
 * - `'unrecognized'`: a part of the path is nothing that exitwatch knows
 *
 * @see {@link locate}
 */
export type LocationReason =
  | 'no-path'
  | 'not-a-path'
  | 'root'
  | 'outside-namespace'
  | 'slice'
  | 'runtime-unit'
  | 'unrecognized';

/**
 * Where a process runs.
 *
 * @see {@link locate}
 */
export type CgroupLocation = {
  /** All that the path names, the outermost first: what comes later is in what comes earlier. */
  chain: CgroupPlace[];
  /** The innermost unit; `null` if the path names none. */
  unit: CgroupUnit | null;
  /** The innermost container; `null` if the path names none. */
  container: CgroupContainer | null;
  /** The innermost pod; `null` if the path names none. */
  pod: CgroupPod | null;
  /** The innermost machine; `null` if the path names none. */
  machine: CgroupMachine | null;
  /**
   * Why what is `null` may exist all the same. `null`: exitwatch knows every part of the path, and
   * it names no more. A container that runs in the cgroup of its unit looks like the unit.
   */
  reason: LocationReason | null;
};
