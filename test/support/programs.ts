import { execFile, spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { on } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import { arrives, until } from './wait';

/** The folder of the compiled test programs. */
export const PROGRAMS = join(__dirname, '..', '..', 'build', 'test-programs');

export const REPOSITORY = join(__dirname, '..', '..');

export function program(name: string): string {
  return join(PROGRAMS, name);
}

const execute = promisify(execFile);

/** Runs a program to its end. Rejects if it fails. */
export function run(
  command: string,
  args: readonly string[],
  options: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
): Promise<{ stdout: string; stderr: string }> {
  const running = execute(command, args, { ...options, encoding: 'utf8' });
  const printed: string[] = [];
  for (const stream of [running.child.stdout, running.child.stderr]) {
    stream?.on('data', (chunk: string) => printed.push(chunk));
  }
  const known = () => `it has printed:\n${lastLines(printed.join(''))}`;
  return arrives(`the end of ${commandLine([command, ...args])}`, running, known).catch(
    (error: unknown) => {
      running.child.kill('SIGKILL'); // nobody waits for it any more
      throw error;
    },
  );
}

/** The command on one line, with long words such as scripts truncated. */
function commandLine(words: readonly string[]): string {
  const short = (word: string) => (word.length > 100 ? `${word.slice(0, 100)}…` : word);
  return words.map((word) => short(word.trim().replaceAll(/\s+/g, ' '))).join(' ');
}

const LAST_LINES = 20;

function lastLines(text: string): string {
  return text.trimEnd().split('\n').slice(-LAST_LINES).join('\n');
}

/** A running program whose output is read line by line. */
export class LineProcess {
  readonly child: ChildProcessWithoutNullStreams;
  /** Without a time limit for each line. */
  readonly lines: AsyncIterableIterator<string>;
  readonly #closed: Promise<number | null>;
  readonly #printed: string[] = [];
  stderr = '';

  constructor(
    command: string,
    args: readonly string[],
    options: { env?: NodeJS.ProcessEnv; cwd?: string } = {},
  ) {
    this.child = spawn(command, args, options);
    this.child.stderr.on('data', (chunk: Buffer) => (this.stderr += chunk.toString()));
    const lines = createInterface(this.child.stdout);
    lines.on('line', (line) => {
      this.#printed.push(line);
      if (this.#printed.length > LAST_LINES) this.#printed.shift();
    });
    this.lines = linesOf(
      // Without a limit: a program whose output nobody reads would have to wait, and could not end.
      on(lines, 'line', { close: ['close'], highWaterMark: Number.MAX_SAFE_INTEGER }),
    );
    this.#closed = new Promise((resolve) => this.child.once('close', resolve));
  }

  get pid(): number {
    if (this.child.pid === undefined) throw new Error('not started');
    return this.child.pid;
  }

  /** Resolves with the exit code when the program has ended and its output has been read. */
  get ended(): Promise<number | null> {
    return this.#arrives('the end', this.#closed);
  }

  /** Stops the program. Resolves when every one of its threads is stopped. */
  async stop(): Promise<void> {
    this.child.kill('SIGSTOP');
    const tasks = `/proc/${this.pid}/task`;
    const isStopped = (task: string) =>
      readFileSync(`${tasks}/${task}/stat`, 'latin1').includes(') T ');
    await until(
      `every thread of ${this.#name} to stop`,
      () => readdirSync(tasks).every(isStopped),
      this.told,
    );
  }

  /** The next line, or undefined at the end. */
  async line(): Promise<string | undefined> {
    const next: IteratorResult<string, undefined> = await this.#arrives(
      'the next line',
      this.lines.next(),
    );
    return next.value;
  }

  /** The next `count` lines. Rejects if there are fewer. */
  async take(count: number): Promise<string[]> {
    const lines: string[] = [];
    while (lines.length < count) {
      const line = await this.line();
      if (line === undefined) {
        await this.ended;
        throw new Error(
          `${this.#name} has printed ${lines.length} lines instead of ${count}\n${this.told()}`,
        );
      }
      lines.push(line);
    }
    return lines;
  }

  async rest(): Promise<string[]> {
    const lines: string[] = [];
    for (let line = await this.line(); line !== undefined; line = await this.line()) {
      lines.push(line);
    }
    return lines;
  }

  get #name(): string {
    return `${this.child.pid ?? 'a process that did not start'}: ${commandLine(this.child.spawnargs)}`;
  }

  /** The output so far, for the error of a wait that times out. */
  readonly told = (): string => {
    const { exitCode, signalCode } = this.child;
    return [
      `it ${exitCode === null && signalCode === null ? 'runs' : `has ended (${signalCode ?? exitCode})`}, and has printed:`,
      ...this.#printed,
      'on stderr:',
      lastLines(this.stderr),
    ].join('\n');
  };

  #arrives<T>(what: string, promise: Promise<T>): Promise<T> {
    return arrives(`${what} of ${this.#name}`, promise, this.told);
  }
}

/**
 * A process that never waits for its child, which is a shell with this `script`. Prints the child's
 * pid. A shell would reap a child that ends before the shell has become another program.
 */
export function carelessParent(script: string): LineProcess {
  const isParentReady = '[ "$(cat /proc/$PPID/comm)" = sleep ]';
  const child = `until ${isParentReady}; do sleep 0.05; done; ${script}`;
  return new LineProcess('sh', ['-c', `sh -c '${child}' & echo $!; exec sleep 1000`]);
}

async function* linesOf(events: AsyncIterable<unknown[]>): AsyncGenerator<string> {
  for await (const [line] of events) yield line as string;
}
