import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder with a BPF file system of its own, and one for state; only root can make it. */
export class MemoryFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'exitwatch-memory-'));
  readonly stateDir = join(this.path, 'state');
  readonly bpffs = join(this.path, 'bpf');
  readonly pinDir = join(this.bpffs, 'exitwatch');

  /** `options`: those of the mount. */
  constructor(options = 'mode=0700') {
    mkdirSync(this.bpffs);
    execFileSync('mount', ['-t', 'bpf', '-o', options, 'bpf', this.bpffs]);
  }

  /** The options of a monitor that remembers here. */
  get options(): { stateDir: string; recorder: { pinDir: string } } {
    return { stateDir: this.stateDir, recorder: { pinDir: this.pinDir } };
  }

  /** What is pinned: a folder for each recorder. */
  get pinned(): string[] {
    return readdirSync(this.pinDir);
  }

  /** The programs end with the file system that they are pinned in. */
  [Symbol.dispose](): void {
    execFileSync('umount', [this.bpffs]);
    rmSync(this.path, { recursive: true });
  }
}
