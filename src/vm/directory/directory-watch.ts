import { statSync, watch, type BigIntStats, type FSWatcher } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';

/** What {@link DirectoryWatch} reports. */
export interface DirectoryListener {
  /**
   * The directory may have changed, appeared, gone or been replaced. `written`: only the contents
   * of the file of this name changed.
   */
  changed(written?: string): void;
  /** Changes are noticed late from now on: inotify is at its limit. */
  warning(error: Error): void;
}

/**
 * How often to look without an event: inotify(7) reports neither a mount over the directory nor the
 * events that it dropped.
 */
const LOOK_MS = 1000;

/** Two changes within one tick of the kernel's clock have the same time. */
const TICK_MS = 20;

/** One directory on the path. */
interface Level {
  path: string;
  /** Device and inode of the directory under watch. */
  id: string | null;
  watcher: FSWatcher | undefined;
}

/**
 * Watches a directory that may be absent, or come and go, with any of its parents: each directory
 * on the path that exists is watched for the next one.
 */
export class DirectoryWatch {
  readonly #levels: Level[];
  readonly #listener: DirectoryListener;
  readonly #timer: NodeJS.Timeout;
  #changedAt = '';
  #hasWarned = false;
  #isClosed = false;

  constructor(path: string, listener: DirectoryListener) {
    this.#listener = listener;
    this.#levels = ancestors(resolve(path)).map((each) => ({
      path: each,
      id: null,
      watcher: undefined,
    }));
    this.#timer = setInterval(() => {
      this.#look();
    }, LOOK_MS).unref();
    this.#arm();
    listener.changed();
  }

  close(): void {
    this.#isClosed = true;
    clearInterval(this.#timer);
    this.#disarm(0);
  }

  /** Watches what exists now. */
  #arm(): void {
    for (const [depth, level] of this.#levels.entries()) {
      const id = idOf(level.path);
      if (level.id === id && level.watcher !== undefined) continue;
      this.#disarm(depth);
      if (id === null) break;
      this.#watch(depth, level);
      // If this is another directory by now, an event or the next look says so.
      level.id = id;
    }
  }

  #watch(depth: number, level: Level): void {
    try {
      level.watcher = watch(level.path, { persistent: false });
    } catch (error) {
      // A directory that must not be read cannot be watched; the next look covers it.
      if ((error as NodeJS.ErrnoException).code !== 'EACCES') this.#warn(error as Error);
      return;
    }
    level.watcher.on('error', () => {
      this.#disarm(depth);
    });
    level.watcher.on('change', (kind, name) => {
      this.#onChange(depth, typeof name === 'string' ? name : null, kind === 'change');
    });
  }

  #onChange(depth: number, name: string | null, isContent: boolean): void {
    if (this.#isClosed) return;
    const next = this.#levels[depth + 1];
    if (next === undefined) {
      // An event under its own name: the directory is gone, or was moved.
      const isItself = name === basename(this.#levels[depth]?.path ?? '');
      if (name === null || isItself) this.#rearm(depth);
      if (name !== null && isContent && !isItself) this.#listener.changed(name);
      else this.#listener.changed();
    } else if (name === null || name === basename(next.path)) {
      this.#rearm(depth + 1);
      this.#listener.changed();
    }
  }

  /** An inode number may be reused at once, so a directory that has changed is watched anew. */
  #rearm(depth: number): void {
    this.#disarm(depth);
    this.#arm();
  }

  #disarm(depth: number): void {
    for (const level of this.#levels.slice(depth)) {
      level.watcher?.close();
      level.watcher = undefined;
      level.id = null;
    }
  }

  #look(): void {
    this.#arm();
    const { path } = this.#levels[this.#levels.length - 1] ?? { path: '/' };
    const changedAt = changeOf(path);
    if (changedAt === this.#changedAt) return;
    this.#changedAt = changedAt;
    this.#listener.changed();
  }

  #warn(error: Error): void {
    if (this.#hasWarned) return;
    this.#hasWarned = true;
    this.#listener.warning(error);
  }
}

/** From the root down to the path itself. */
function ancestors(path: string): string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [...ancestors(parent), path];
}

function idOf(path: string): string | null {
  const status = statusOf(path);
  return status === null ? null : `${status.dev}:${status.ino}`;
}

function statusOf(path: string): BigIntStats | null {
  try {
    const status = statSync(path, { bigint: true });
    return status.isDirectory() ? status : null;
  } catch {
    return null; // or hidden from us
  }
}

/** Which directory it is, and when its entries last changed; a recent time never equals another. */
function changeOf(path: string): string {
  const status = statusOf(path);
  if (status === null) return 'absent';
  const isRecent = Date.now() - Number(status.mtimeMs) < TICK_MS;
  return `${status.dev}:${status.ino}:${status.mtimeNs}${isRecent ? `:${performance.now()}` : ''}`;
}
