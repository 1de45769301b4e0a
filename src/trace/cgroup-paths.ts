/** How many ids to remember. */
const MOST = 4096;

/**
 * Paths of cgroups by id; the kernel never reuses an id. A path that is unknown is asked for again: a BPF
 * program may report it later, and the addon asks the kernel only once.
 */
export class CgroupPaths {
  readonly #ask: (id: number) => string | null | undefined;
  readonly #paths = new Map<number, string>();
  /** Consecutive exits are mostly in the same cgroup. */
  #lastId = 0;
  #lastPath: string | null = null;

  /**
   * `ask`: the addon. It answers `undefined` if the path is unknown, `null` if it cannot tell right
   * now.
   */
  constructor(ask: (id: number) => string | null | undefined) {
    this.#ask = ask;
  }

  /** `null` if unknown. */
  path(id: number): string | null {
    if (id === 0) return null;
    if (id === this.#lastId) return this.#lastPath;
    let path = this.#paths.get(id);
    if (path === undefined) {
      path = this.#ask(id) ?? undefined;
      if (path === undefined) return null;
      if (this.#paths.size >= MOST) this.#paths.clear();
      this.#paths.set(id, path);
    }
    this.#lastId = id;
    this.#lastPath = path;
    return path;
  }
}
