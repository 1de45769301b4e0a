import { chmodSync, cpSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { installCommand } from './command';
import { likeOnPage } from './pages';
import { LineProcess } from './programs';
import { readerSleeps } from './readers';
import { until as becomes } from './wait';

/** Runs the commands of a page in a folder that stands in for those that the page names. */
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

  /** Runs a command of a page in a shell. Its stderr is among its lines, as on a terminal. */
  run(command: string): LineProcess {
    return this.start('sh', ['-c', `exec 2>&1; ${command}`]);
  }

  start(command: string, args: readonly string[]): LineProcess {
    const process = new LineProcess(command, args, { env: this.env, cwd: this.folder });
    this.#started.push(process);
    return process;
  }

  /** A copy of a program under a name that a page uses. */
  named(name: string, original = '/bin/sleep'): string {
    cpSync(realpathSync(original), this.at(name));
    return this.at(name);
  }

  async remove(): Promise<void> {
    for (const { child } of this.#started) {
      child.stdout.destroy(); // nothing reads it any more, so it would not close
      child.kill('SIGKILL');
    }
    await Promise.all(this.#started.map(({ ended }) => ended));
    rmSync(this.folder, { recursive: true });
  }
}

/** Resolves when a command is watching. A shell may have started it. */
export async function armed({ pid, child, told }: LineProcess): Promise<void> {
  const watches = () => {
    try {
      const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').match(/\d+/g);
      return [pid, ...(children ?? []).map(Number)].some(readerSleeps);
    } catch {
      return child.exitCode !== null; // it has ended
    }
  };
  await becomes(`process ${pid}, or a child of it, to watch`, watches, told);
}

/** The lines up to the first one that fits. */
export async function until(process: LineProcess, fits: RegExp): Promise<string[]> {
  const lines: string[] = [];
  for (let line = await process.line(); line !== undefined; line = await process.line()) {
    lines.push(line);
    if (fits.test(line)) return lines;
  }
  throw new Error([`it has not said ${String(fits)}:`, ...lines, process.stderr].join('\n'));
}

/**
 * Checks that each line of the page is printed, in order. Other lines may come in between, because
 * other processes may end on this host.
 */
export function expectAsShown(printed: readonly string[], onPage: readonly string[]): void {
  let from = 0;
  for (const line of onPage) {
    const rest = printed.slice(from);
    const at = rest.findIndex((each) => likeOnPage(line).test(each));
    expect({ line, isThere: at !== -1, rest }).toEqual({ line, isThere: true, rest });
    from += at + 1;
  }
}
