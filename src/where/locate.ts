import { Chain } from './chain.js';
import { looksLikeContainer, podOfSlice, readContainer, readNamedContainer } from './containers.js';
import type { CgroupLocation, CgroupUnit, LocationReason } from './location.js';
import { readMachine, readMachineUnit } from './machines.js';
import {
  instanceOf,
  isCapsuleManager,
  sessionOf,
  sliceOf,
  uidOfManager,
  uidOfSlice,
  unitOf,
} from './unit-names.js';

/** PATH_MAX: /proc/PID/cgroup has no longer path. */
const MOST = 4096;

/** What the kernel appends to the path of a cgroup that is gone, of a zombie for example. */
const DELETED = ' (deleted)';

/**
 * Units whose processes run containers or machines. In v1 and hybrid hierarchies what they run is
 * often in their own cgroup of v2.
 */
const RUNTIMES = new Set([
  ...['buildkit.service', 'containerd.service', 'cri-docker.service', 'crio.service'],
  ...['docker.service', 'incus.service', 'k0scontroller.service', 'k0sworker.service'],
  ...['k3s-agent.service', 'k3s.service', 'kubelet.service'],
  ...['libvirtd.service', 'lxc.service', 'lxd.service', 'podman.service', 'rke2-agent.service'],
  ...['rke2-server.service', 'snap.docker.dockerd.service', 'snap.lxd.daemon.service'],
  ...['snap.microk8s.daemon-containerd.service', 'snap.microk8s.daemon-kubelet.service'],
  ...['snap.microk8s.daemon-kubelite.service', 'virtlxcd.service', 'virtqemud.service'],
]);
const RUNTIME_TEMPLATES = ['lxc', 'pve-container', 'systemd-nspawn'];

/** What a systemd whose units come next says about them. */
type Level = Pick<CgroupUnit, 'manager' | 'uid' | 'session'>;

const SYSTEM: Level = { manager: 'system', uid: null, session: null };

/**
 * Tells from the path of a cgroup in which unit of systemd, container, pod and machine its processes
 * are. It is a pure function: it looks at the text and at nothing else, and never throws.
 *
 * The path is that of an {@link ExitEvent} (`event.cgroup`, `event.sender?.cgroup`), or one of
 * /proc/PID/cgroup without what precedes it (`0::`). The path of v2 is the best; in a v1 hierarchy
 * the controllers `pids`, `memory` and `name=systemd` tell most.
 *
 * It recognizes the layouts of systemd; of Docker, containerd, CRI-O, Podman and BuildKit; of
 * kubelet with both of its drivers; of libvirt, Proxmox, LXC (LXD, Incus) and systemd-nspawn, in
 * each other at will. It does not guess: 64 hexadecimal digits alone are no container. `reason` says
 * why more may be there than it tells.
 *
 * A name in the result may have been chosen by a user who wanted to mislead: whoever may create
 * cgroups may name them. It has at most 255 characters, and no control characters, surrogates or
 * characters that change the direction of text; a path part that has some is `'unrecognized'`.
 * Unit names keep systemd's escapes, machine names do not.
 *
 * @example
 *   const { unit, container, reason } = locate('/system.slice/nginx.service');
 *   console.log(unit?.name, container, reason); // nginx.service null null
 *
 * @see [Unit, container, pod and machine](../../docs/cgroups.md)
 */
export function locate(cgroup: string | null | undefined): CgroupLocation {
  if (typeof cgroup !== 'string') return locationOf(new Chain(), 'no-path');
  if (!cgroup.startsWith('/') || cgroup.length > MOST) return locationOf(new Chain(), 'not-a-path');
  const path = cgroup.endsWith(DELETED) ? cgroup.slice(0, -DELETED.length) : cgroup;
  const segments = path.split('/').filter((segment) => segment !== '');
  const start = segments.findIndex((segment) => segment !== '..');
  if (segments.length === 0) return locationOf(new Chain(), 'root');
  if (start === -1) return locationOf(new Chain(), 'outside-namespace');

  const chain = new Chain();
  const isWhole = readPath(chain, segments, start);
  return locationOf(chain, start > 0 ? 'outside-namespace' : reasonOf(chain, isWhole));
}

function locationOf(chain: Chain, reason: LocationReason | null): CgroupLocation {
  const { places, unit, container, pod, machine } = chain;
  return { chain: places, unit, container, pod, machine, reason };
}

function reasonOf(chain: Chain, isWhole: boolean): LocationReason | null {
  const last = chain.places.at(-1);
  if (!isWhole) return 'unrecognized';
  if (last?.kind === 'slice') return 'slice';
  if (last?.kind !== 'unit') return null;
  const { name } = last;
  const isRuntime =
    RUNTIMES.has(name) || RUNTIME_TEMPLATES.some((each) => instanceOf(name, each) !== null);
  return isRuntime ? 'runtime-unit' : looksLikeContainer(name) ? 'unrecognized' : null;
}

/** Returns whether it knows each segment. */
function readPath(chain: Chain, segments: readonly string[], start: number): boolean {
  // Where the namespace hides what is above, a name like a unit's may be a cgroup in a unit.
  let level = start === 0 ? SYSTEM : null;
  let isTop = start === 0;
  let isWhole = true;
  let at = start;
  while (at < segments.length) {
    const before = at;
    if (level !== null) [at, level] = readLevel(chain, segments, at, level);
    if (at > before) {
      isTop = level === SYSTEM;
      continue;
    }
    // Such a name is of a pod wherever it is; the namespace may hide the slices above.
    const pod = start > 0 ? podOfSlice(segments[at] ?? '') : null;
    if (pod !== null) {
      chain.addPod(pod, ++at);
      continue;
    }
    const length = readContainer(chain, segments, at) || readMachine(chain, segments, at, isTop);
    isWhole &&= length > 0;
    at += length || 1;
    // In a container or machine everything begins anew.
    const kind = chain.places.at(-1)?.kind;
    isTop = length > 0 && (kind === 'container' || kind === 'machine');
    level = isTop ? SYSTEM : null;
  }
  return isWhole;
}

/**
 * Reads slices and the unit in them. Returns the position after them, and the level that begins
 * there; `null`: no systemd has units there. cg_path_get_unit(), cg_path_get_user_unit() and
 * cg_path_get_slice() of systemd's cgroup-util.c.
 */
function readLevel(
  chain: Chain,
  segments: readonly string[],
  start: number,
  level: Level,
): [number, Level | null] {
  let at = start;
  let slice: string | null = null;
  let isPod = false;
  for (let next; (next = sliceOf(segments[at] ?? '')) !== null; at++) {
    slice = next;
    const pod = podOfSlice(slice);
    isPod ||= pod !== null;
    if (pod !== null) chain.addPod(pod, at + 1);
  }
  const name = unitOf(segments[at] ?? '');
  if (name === null || name.endsWith('.slice')) {
    if (slice !== null && !isPod) chain.addSlice(slice);
    return [at, null];
  }
  const unit: CgroupUnit = {
    name,
    slice: slice ?? '-.slice',
    manager: level.manager,
    uid: level.uid ?? uidOfSlice(slice ?? ''),
    session: level.session ?? (level.manager === 'system' ? sessionOf(name) : null),
  };
  chain.addUnit(unit);
  return inUnit(chain, unit, segments, at);
}

/** `at`: the position of the unit. */
function inUnit(
  chain: Chain,
  unit: CgroupUnit,
  segments: readonly string[],
  at: number,
): [number, Level | null] {
  const after = at + 1;
  if (unit.manager === 'system') {
    const uid = uidOfManager(unit.name);
    if (uid !== null) return [after, { manager: 'user', uid, session: null }];
    if (isCapsuleManager(unit.name)) {
      return [after, { manager: 'capsule', uid: null, session: null }];
    }
    // Early versions of systemd ran a user's manager in a session.
    const { session } = unit;
    if (session !== null) return [after, { manager: 'user', uid: unit.uid, session }];
  }
  const isScope = unit.name.endsWith('.scope');
  const length = isScope ? readNamedContainer(chain, segments, at) : 0;
  if (length > 0) return [at + length, chain.places.at(-1)?.kind === 'monitor' ? null : SYSTEM];
  const more = readMachineUnit(chain, unit, segments, after);
  if (more !== null) {
    return [after + more, chain.places.at(-1)?.kind === 'monitor' ? null : SYSTEM];
  }
  // Commands such as ExecStop= of a service with Delegate=: EXEC_CONTROL_CGROUP of systemd.
  return [segments[after] === '.control' ? after + 1 : after, null];
}
