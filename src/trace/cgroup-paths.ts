import { loadAddon } from '../addon.js';

/** The ids of so many are remembered. */
const MOST = 4096;

/**
 * Paths of cgroups by their ids, which the kernel never gives again: one that cannot be told now will
 * not be told later.
 */
export class CgroupPaths {
  /** Most ends in a row are of one cgroup. */
  #lastId = 0;
  #lastPath: string | null = null;
  readonly #paths = new Map<number, string | null>();

  /** `null` where it cannot be told. */
  path(id: number): string | null {
    if (id === 0) return null;
    if (id !== this.#lastId) {
      this.#lastPath = this.#find(id);
      this.#lastId = id;
    }
    return this.#lastPath;
  }

  #find(id: number): string | null {
    const known = this.#paths.get(id);
    if (known !== undefined) return known;
    const path = loadAddon().cgroupPath(id) ?? null;
    if (this.#paths.size >= MOST) this.#paths.clear();
    this.#paths.set(id, path);
    return path;
  }
}
