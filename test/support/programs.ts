import { execFile, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { promisify } from 'node:util';

/** Where the compiled test programs are. */
export const PROGRAMS = join(__dirname, '..', '..', 'build', 'test-programs');

export const REPOSITORY = join(__dirname, '..', '..');

export const run = promisify(execFile);

export function program(name: string): string {
  return join(PROGRAMS, name);
}

/** A running program whose output is read line by line. */
export class LineProcess {
  readonly child: ChildProcessWithoutNullStreams;
  readonly ended: Promise<number | null>;
  readonly #lines: AsyncIterator<string, undefined>;
  stderr = '';

  constructor(
    command: string,
    args: readonly string[],
    options: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
  ) {
    this.child = spawn(command, args, options);
    this.child.stderr.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    this.#lines = createInterface(this.child.stdout)[Symbol.asyncIterator]();
    this.ended = new Promise((resolve) => this.child.once('close', resolve));
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error('not started');
    return this.child.pid;
  }

  /** Stops it; resolves when every thread of it has. */
  async stop(): Promise<void> {
    this.child.kill('SIGSTOP');
    const tasks = `/proc/${this.pid}/task`;
    const isStopped = (task: string) =>
      readFileSync(`${tasks}/${task}/stat`, 'latin1').includes(') T ');
    while (!readdirSync(tasks).every(isStopped)) await setTimeout(1);
  }

  /** The next line, or undefined at the end. */
  async line(): Promise<string | undefined> {
    const next: IteratorResult<string, undefined> = await this.#lines.next();
    return next.value;
  }

  async rest(): Promise<string[]> {
    const lines: string[] = [];
    for (let line = await this.line(); line !== undefined; line = await this.line()) {
      lines.push(line);
    }
    return lines;
  }
}
