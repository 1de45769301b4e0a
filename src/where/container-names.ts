import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { join } from 'node:path';

import type { CgroupContainer, ContainerRuntime } from './location.js';

const { O_NOCTTY, O_NONBLOCK, O_RDONLY } = constants;

/** Podman has one file for all containers. */
const MOST_BYTES = 4 * 1024 * 1024;

/** What changes a terminal or hides is no name for us. */
const VISIBLE = /^[^\p{C}\p{Zl}\p{Zp}]{1,255}$/u;

/** A file that may have the name, below the root directory, and where it stands in there. */
interface Place {
  path: (id: string) => string;
  name: (content: unknown, id: string) => unknown;
}

const CONFIG = 'config.json';

/** An annotation in the configuration of the OCI runtime. */
const annotation =
  (...names: string[]) =>
  (content: unknown) =>
    names.map((name) => at(content, 'annotations', name)).find((value) => value !== undefined);

/** The file system drivers of containers/storage, where Podman and CRI-O keep containers. */
const DRIVERS = ['overlay', 'vfs', 'btrfs', 'zfs'];
const STORAGES = DRIVERS.map((driver) => `var/lib/containers/storage/${driver}-containers`);

const DOCKER: readonly Place[] = [
  'var/lib/docker',
  'var/snap/docker/common/var-lib-docker', // Ubuntu's snap
].map((folder) => ({
  path: (id) => join(folder, 'containers', id, 'config.v2.json'),
  // It begins with a slash.
  name: (content) => {
    const name = at(content, 'Name');
    return typeof name === 'string' ? name.replace(/^\//, '') : undefined;
  },
}));

const CONTAINERD: readonly Place[] = [
  ['run/containerd', 'k8s.io'],
  ['run/containerd', 'default'],
  ['run/k3s/containerd', 'k8s.io'], // K3s and RKE2
  ['run/k0s/containerd', 'k8s.io'],
  ['var/snap/microk8s/common/run/containerd', 'k8s.io'],
].map(([state = '', namespace = '']) => ({
  path: (id) => join(state, 'io.containerd.runtime.v2.task', namespace, id, CONFIG),
  name: annotation('io.kubernetes.cri.container-name', 'nerdctl/name'),
}));

const CRI_O: readonly Place[] = STORAGES.map((storage) => ({
  path: (id) => join(storage, id, 'userdata', CONFIG),
  name: annotation('io.kubernetes.container.name'),
}));

/** Of `--rm` and of quadlets, which need not survive a crash; with a transient store of all. */
const VOLATILE = 'volatile-containers.json';

const PODMAN: readonly Place[] = [
  ...STORAGES.flatMap((storage) => [join(storage, 'containers.json'), join(storage, VOLATILE)]),
  ...DRIVERS.map((driver) => join(`run/containers/storage/${driver}-containers`, VOLATILE)),
].map((path) => ({
  path: () => path,
  name: (content, id) => {
    const all: unknown[] = Array.isArray(content) ? content : [];
    return at(
      all.find((each) => at(each, 'id') === id),
      'names',
      '0',
    );
  },
}));

const PLACES: Record<ContainerRuntime, readonly Place[]> = {
  docker: DOCKER,
  containerd: CONTAINERD,
  'cri-o': CRI_O,
  podman: PODMAN,
  buildkit: [],
};

/**
 * The name of a container of this host, from the files of its runtime, which usually only root may
 * read. `null`: no file has it, or the container is already removed. Rootless runtimes keep their
 * files in the home of their user; those are not read.
 *
 * @param root for tests
 */
export function containerName({ runtime, id }: CgroupContainer, root = '/'): string | null {
  const places = runtime === null ? CONTAINERD : PLACES[runtime];
  for (const place of places) {
    const name = place.name(readJson(join(root, place.path(id))), id);
    if (typeof name === 'string' && VISIBLE.test(name)) return name;
  }
  return null;
}

/** `undefined`: there is none. */
function at(value: unknown, ...keys: readonly string[]): unknown {
  return keys.reduce<unknown>(
    (inner, key) =>
      typeof inner === 'object' && inner !== null && Object.hasOwn(inner, key)
        ? (inner as Record<string, unknown>)[key]
        : undefined,
    value,
  );
}

function readJson(path: string): unknown {
  try {
    return JSON.parse(readText(path));
  } catch {
    return undefined;
  }
}

/** Synchronous, because an event is told at once. It happens once for each container. */
function readText(path: string): string {
  const file = openSync(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  try {
    const { size } = fstatSync(file);
    if (size > MOST_BYTES) throw new RangeError('too large');
    const buffer = Buffer.alloc(size);
    return buffer.toString('utf8', 0, readSync(file, buffer, 0, size, 0));
  } finally {
    closeSync(file);
  }
}
