/** The ids of so many are remembered. */
const MOST = 4096;

/**
 * Paths of cgroups by their ids, which the kernel never gives again: one that is gone, or may not be told,
 * stays so.
 */
export class CgroupPaths {
  readonly #ask: (id: number) => string | null | undefined;
  readonly #paths = new Map<number, string | null>();
  /** Most ends in a row are of one cgroup. */
  #lastId = 0;
  #lastPath: string | null = null;

  /** `ask`: the addon, which has `undefined` for what it cannot tell, and `null` for not just now. */
  constructor(ask: (id: number) => string | null | undefined) {
    this.#ask = ask;
  }

  /** `null` where it cannot be told. */
  path(id: number): string | null {
    if (id === 0) return null;
    if (id === this.#lastId) return this.#lastPath;
    let path = this.#paths.get(id);
    if (path === undefined) {
      const answer = this.#ask(id);
      if (answer === null) return null;
      path = answer ?? null;
      if (this.#paths.size >= MOST) this.#paths.clear();
      this.#paths.set(id, path);
    }
    this.#lastId = id;
    this.#lastPath = path;
    return path;
  }
}
