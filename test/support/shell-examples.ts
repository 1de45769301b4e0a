import { chmodSync, cpSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { installCommand } from './command';
import { likeOnPage } from './pages';
import { LineProcess } from './programs';
import { readerSleeps } from './readers';

/** Where the commands of a page are run: a folder that stands for those which the page names. */
export class ShellExamples {
  readonly folder = mkdtempSync(join(tmpdir(), 'exitwatch-shell-'));
  readonly env: NodeJS.ProcessEnv;
  readonly #started: LineProcess[] = [];

  constructor() {
    chmodSync(this.folder, 0o755);
    this.env = installCommand(this.folder).env;
  }

  at(name: string): string {
    return join(this.folder, name);
  }

  /** A command of a page, run in a shell; what it says on stderr is among its lines, as on a terminal. */
  run(command: string): LineProcess {
    return this.start('sh', ['-c', `exec 2>&1; ${command}`]);
  }

  start(command: string, args: readonly string[]): LineProcess {
    const process = new LineProcess(command, args, { env: this.env, cwd: this.folder });
    this.#started.push(process);
    return process;
  }

  /** A copy of a program, by the name that a page has for one. */
  named(name: string, original = '/bin/sleep'): string {
    cpSync(realpathSync(original), this.at(name));
    return this.at(name);
  }

  async remove(): Promise<void> {
    for (const { child } of this.#started) {
      child.stdout.destroy(); // nobody reads it any more, and it would not be closed
      child.kill('SIGKILL');
    }
    await Promise.all(this.#started.map(({ ended }) => ended));
    rmSync(this.folder, { recursive: true });
  }
}

/** Resolves when a command watches; a shell may have started it. */
export async function armed({ pid, child }: LineProcess): Promise<void> {
  const watches = () => {
    try {
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g);
      return [pid, ...(children ?? []).map(Number)].some(readerSleeps);
    } catch {
      return child.exitCode !== null; // it has ended
    }
  };
  while (!watches()) await setTimeout(5);
}

/** The lines up to one that fits. */
export async function until(process: LineProcess, fits: RegExp): Promise<string[]> {
  const lines: string[] = [];
  for (let line = await process.line(); line !== undefined; line = await process.line()) {
    lines.push(line);
    if (fits.test(line)) return lines;
  }
  throw new Error([`it has not said ${String(fits)}:`, ...lines, process.stderr].join('\n'));
}

/** Each line of the page comes out, in its order. Others may come in between: whoever else ends there. */
export function expectAsShown(printed: readonly string[], onPage: readonly string[]): void {
  let from = 0;
  for (const line of onPage) {
    const rest = printed.slice(from);
    const at = rest.findIndex((each) => likeOnPage(line).test(each));
    expect({ line, isThere: at !== -1, rest }).toEqual({ line, isThere: true, rest });
    from += at + 1;
  }
}
