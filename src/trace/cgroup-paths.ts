import { loadAddon } from '../addon.js';

/** The ids of so many are remembered. */
const MOST = 4096;

/**
 * Paths of cgroups by their ids, which the kernel never gives again: one that is gone, or may not be told,
 * stays so.
 */
export class CgroupPaths {
  readonly #paths = new Map<number, string | null>();
  /** Most ends in a row are of one cgroup. */
  #lastId = 0;
  #lastPath: string | null = null;

  /** `null` where it cannot be told. */
  path(id: number): string | null {
    if (id === 0) return null;
    if (id === this.#lastId) return this.#lastPath;
    const path = this.#paths.get(id) ?? this.#ask(id);
    if (path === undefined) return null;
    this.#lastId = id;
    this.#lastPath = path;
    return path;
  }

  /** `undefined`: not just now. */
  #ask(id: number): string | null | undefined {
    if (this.#paths.has(id)) return null;
    const answer = loadAddon().cgroupPath(id);
    if (answer === null) return undefined;
    if (this.#paths.size >= MOST) this.#paths.clear();
    this.#paths.set(id, answer ?? null);
    return answer ?? null;
  }
}
