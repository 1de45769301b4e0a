import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A folder with a BPF file system of its own, and one for state; only root can make it. */
export class MemoryFolder {
  readonly path = mkdtempSync(join(tmpdir(), 'exitwatch-memory-'));
  readonly stateDir = join(this.path, 'state');
  readonly bpffs = join(this.path, 'bpf');
  readonly pinDir = join(this.bpffs, 'exitwatch');

  /** `owner`: the user of both. */
  constructor(owner = 0) {
    mkdirSync(this.bpffs);
    execFileSync('mount', ['-t', 'bpf', '-o', 'mode=0700', 'bpf', this.bpffs]);
    mkdirSync(this.stateDir, { mode: 0o700 });
    // Before Linux 6.8 there is no mount option for it.
    for (const path of [this.bpffs, this.stateDir]) chownSync(path, owner, owner);
    if (owner !== 0) chmodSync(this.path, 0o755);
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
