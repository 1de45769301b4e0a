import type { Chain } from './chain.js';
import type { CgroupPod, ContainerRuntime } from './location.js';
import { sliceOf } from './unit-names.js';

/**
 * What stands before a container's id: `docker-ID.scope` with the systemd driver, `docker-ID` with
 * the cgroupfs driver. `libpod-payload` is Podman with --cgroups=split, which quadlets use.
 */
const CONTAINERS: ReadonlyMap<string, ContainerRuntime> = new Map([
  ['docker', 'docker'],
  ['cri-containerd', 'containerd'],
  ['nerdctl', 'containerd'],
  ['crio', 'cri-o'],
  ['libpod', 'podman'],
  ['libpod-payload', 'podman'],
]);

/** conmon(8) is outside of the container that it watches over. */
const MONITORS: ReadonlyMap<string, ContainerRuntime> = new Map([
  ['crio-conmon', 'cri-o'],
  ['libpod-conmon', 'podman'],
]);

const ID = /^[0-9a-f]{64}$/;
const ID_DIGITS = 64;

/** identity.NewID() of BuildKit: 25 digits of base 36. */
const BUILD = /^[0-9a-z]{25}$/;

/**
 * The uid of a pod: a UUID, or the hash of the file that a static pod comes from. kubelet's systemd
 * driver writes `_` for `-`, because `-` separates slices.
 */
const SLICED_POD =
  /(?:^|-)kubepods(?:-burstable|-besteffort)?-pod([0-9a-f]{8}(?:_[0-9a-f]{4}){3}_[0-9a-f]{12}|[0-9a-f]{32})\.slice$/;
const POD = /^pod([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32})$/;
const PODMAN_POD = /(?:^|-)libpod_pod_([0-9a-f]{64})\.slice$/;

/**
 * The pod whose cgroup is this slice. cgroup_manager_linux.go of kubelet; pod_internal_linux.go of
 * Podman.
 */
export function podOfSlice(slice: string): CgroupPod | null {
  const uid = SLICED_POD.exec(slice)?.[1];
  if (uid !== undefined) return { manager: 'kubernetes', uid: uid.replaceAll('_', '-') };
  const podman = PODMAN_POD.exec(slice)?.[1];
  return podman === undefined ? null : { manager: 'podman', uid: podman };
}

/** Whether a scope has a name such as only containers have, even if their runtime is unknown. */
export function looksLikeContainer(unit: string): boolean {
  return /-[0-9a-f]{64}\.scope$/.test(unit);
}

/**
 * Adds the container, or the container's monitor, to whose cgroup this name belongs. Returns how
 * many segments it consists of; 0: it is none.
 */
export function readNamedContainer(chain: Chain, segments: readonly string[], at: number): number {
  const segment = (segments[at] ?? '').replace(/\.scope$/, '');
  const id = segment.slice(-ID_DIGITS);
  const prefix = segment.slice(0, -ID_DIGITS - 1);
  if (segment.at(-ID_DIGITS - 1) !== '-' || !ID.test(id)) return 0;
  const runtime = CONTAINERS.get(prefix);
  if (runtime !== undefined) {
    chain.addContainer({ runtime, id, name: null });
    // crun(1) puts the container into a cgroup of its own below the scope.
    return segments[at + 1] === 'container' ? 2 : 1;
  }
  const monitored = MONITORS.get(prefix);
  if (monitored === undefined) return 0;
  chain.addContainerMonitor({ runtime: monitored, id, name: null });
  return 1;
}

/** The same for all that can be told of containers and pods without systemd. */
export function readContainer(chain: Chain, segments: readonly string[], at: number): number {
  return (
    readPod(chain, segments, at) ||
    readNamedContainer(chain, segments, at) ||
    readColons(chain, segments, at) ||
    readInPod(chain, segments, at) ||
    readDocker(chain, segments, at) ||
    readBuild(chain, segments, at) ||
    readPodman(chain, segments, at)
  );
}

/**
 * `kubepods/burstable/podUID`: kubelet's cgroupfs driver. `kubelet` before it is the cgroup root of
 * kind.
 */
function readPod(chain: Chain, segments: readonly string[], at: number): number {
  let end = at;
  if (segments[end] === 'kubelet') end++;
  if (segments[end] !== 'kubepods') return 0;
  end++;
  if (segments[end] === 'burstable' || segments[end] === 'besteffort') end++;
  const uid = POD.exec(segments[end] ?? '')?.[1];
  if (uid === undefined) return 0;
  end++;
  chain.addPod({ manager: 'kubernetes', uid }, end);
  return end - at;
}

/** `SLICE:PREFIX:ID`: a path for the systemd driver that a runtime took for one of cgroupfs. */
function readColons(chain: Chain, segments: readonly string[], at: number): number {
  const [parent = '', prefix = '', id = '', ...more] = (segments[at] ?? '').split(':', 4);
  const slice = sliceOf(parent);
  const runtime = CONTAINERS.get(prefix);
  if (slice === null || runtime === undefined || !ID.test(id) || more.length > 0) return 0;
  const pod = podOfSlice(slice);
  if (pod !== null) chain.addPod(pod, at);
  chain.addContainer({ runtime, id, name: null });
  return 1;
}

/** `podUID/ID`: containerd or Docker. */
function readInPod(chain: Chain, segments: readonly string[], at: number): number {
  const id = segments[at] ?? '';
  if (chain.endOfPod !== at || chain.pod?.manager !== 'kubernetes' || !ID.test(id)) return 0;
  chain.addContainer({ runtime: null, id, name: null });
  return 1;
}

/** `docker/ID`: Docker's cgroupfs driver. */
function readDocker(chain: Chain, segments: readonly string[], at: number): number {
  const id = segments[at + 1] ?? '';
  if (segments[at] !== 'docker' || !ID.test(id)) return 0;
  chain.addContainer({ runtime: 'docker', id, name: null });
  return 2;
}

/** `buildkit/ID`, in Docker `docker/buildkit/ID`. */
function readBuild(chain: Chain, segments: readonly string[], at: number): number {
  const length = segments[at] === 'docker' ? 3 : 2;
  const id = segments[at + length - 1] ?? '';
  if (segments[at + length - 2] !== 'buildkit' || !BUILD.test(id)) return 0;
  chain.addContainer({ runtime: 'buildkit', id, name: null });
  return length;
}

/** `libpod_parent/libpod-ID` and `libpod_parent/POD/libpod-ID`: Podman's cgroupfs driver. */
function readPodman(chain: Chain, segments: readonly string[], at: number): number {
  if (segments[at] !== 'libpod_parent') return 0;
  const next = segments[at + 1] ?? '';
  if (!ID.test(next)) {
    const length = readNamedContainer(chain, segments, at + 1);
    return length === 0 ? 0 : length + 1;
  }
  chain.addPod({ manager: 'podman', uid: next }, at + 2);
  return 2;
}
