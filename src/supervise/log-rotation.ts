import { statSync } from 'node:fs';

import { asExitwatchError, type ExitwatchError } from '../common/errors.js';
import type { Supervisor } from '../supervisor/index.js';

const EVERY_MS = 10_000;

/**
 * Rotates the files that services write to themselves, `logs.stdout` and `logs.stderr`, while they run: a
 * keeper does that at their starts only. Those of `logs.file` are rotated by the process that writes them.
 */
export class LogRotation {
  readonly #supervisor: Supervisor;
  readonly #onError: (service: string, error: ExitwatchError) => void;
  #timer: NodeJS.Timeout | undefined;
  #isRotating = false;
  /** Told once, until it has worked again. */
  readonly #failing = new Set<string>();

  constructor(supervisor: Supervisor, onError: (service: string, error: ExitwatchError) => void) {
    this.#supervisor = supervisor;
    this.#onError = onError;
  }

  begin(): void {
    this.#timer = setInterval(() => {
      if (this.#isRotating) return;
      this.#isRotating = true;
      void this.#look().finally(() => {
        this.#isRotating = false;
      });
    }, EVERY_MS);
    this.#timer.unref();
  }

  end(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    for (const { name, phase } of this.#supervisor.services()) {
      if (phase !== 'running') continue;
      const {
        stdout,
        stderr,
        maxBytes = 0,
        keep,
      } = this.#supervisor.service(name).spec().logs ?? {};
      const files = new Set([stdout, stderr].filter((each) => each !== undefined));
      for (const file of files) {
        if (maxBytes > 0 && sizeOf(file) >= maxBytes) await this.#rotate(name, file, keep);
      }
    }
  }

  async #rotate(name: string, file: string, keep: number | undefined): Promise<void> {
    try {
      await this.#supervisor.rotateLog(name, file, keep);
      this.#failing.delete(file);
    } catch (error) {
      if (this.#failing.has(file)) return;
      this.#failing.add(file);
      this.#onError(name, asExitwatchError(error));
    }
  }
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
