import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import type { ServiceSpec } from '../../src/supervisor/index.js';

import { LineProcess } from './programs';

export type ToldExit = {
  service: string;
  run: string;
  pid: number;
  how: string;
  signal: string | null;
  exitCode: number | null;
  isRepeated: boolean;
};

type Answer = { error?: string; result?: unknown };

/** A supervisor in a process of its own, which can be killed: test/programs/supervised.cjs. */
export class Supervised {
  readonly process: LineProcess;
  readonly exits: ToldExit[] = [];
  /** When the process of a run started, in clock ticks. */
  readonly began = new Map<string, number>();
  readonly told: string[] = [];
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  readonly ready: Promise<number>;
  #requests = 0;

  constructor(stateDir: string, env: Record<string, string> = {}) {
    const program = join(__dirname, '..', 'programs', 'supervised.cjs');
    this.process = new LineProcess(process.execPath, ['--expose-gc', program, stateDir], {
      env: { ...process.env, ...env },
    });
    this.ready = this.#read();
    this.process.child.stdin.on('error', () => undefined); // it was killed
  }

  /** Rejects with the code of the error; resolves with `null` if it is killed in the meantime. */
  async request(op: string, more: object = {}): Promise<unknown> {
    const id = ++this.#requests;
    const answer = await new Promise<Answer | null>((resolve) => {
      this.#waiting.set(id, resolve);
      void this.process.ended.then(() => {
        resolve(null);
      });
      this.process.child.stdin.write(`${JSON.stringify({ id, op, ...more })}\n`);
    });
    if (answer?.error !== undefined) throw new Error(`${op}: ${answer.error}`);
    return answer?.result ?? null;
  }

  async kill(): Promise<void> {
    this.process.child.kill('SIGKILL');
    await this.process.ended;
  }

  /** Resolves with the keeper's pid, or with 0 if it was killed before it was ready. */
  #read(): Promise<number> {
    return new Promise((resolve, reject) => {
      void (async () => {
        for await (const line of this.process.lines) {
          this.told.push(line);
          const message = JSON.parse(line) as Record<string, never>;
          if ('ready' in message) resolve(message['ready']);
          if ('failed' in message) reject(new Error(message['failed']));
          if ('began' in message) this.began.set(message['began'], Number(message['ticks']));
          if ('exit' in message) this.exits.push(message['exit']);
          if ('done' in message) this.#waiting.get(message['done'])?.(message);
        }
        resolve(0);
      })();
    });
  }
}

export type Marked = { pid: number; ticks: number; mark: string };

/** Processes by a word in their command line, as /proc has them now: `WORD:NAME:VARIANT`. */
export function marked(word: string): Marked[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'latin1').split('\0');
      const mark = words.find((each) => each.startsWith(`${word}:`));
      if (mark === undefined) return [];
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1');
      const ticks = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]);
      return [{ pid: Number(name), ticks, mark: mark.slice(word.length + 1) }];
    } catch {
      return [];
    }
  });
}

/** A service whose process {@link marked} finds. */
export const markedService = (
  word: string,
  name: string,
  variant: string,
  more: Partial<ServiceSpec> = {},
): ServiceSpec => ({
  name,
  // No shell: while one becomes another program, it has no command line for a moment. tail waits for
  // ever, and takes the word for a file that is missing.
  command: 'tail',
  args: ['-f', '/dev/null', `${word}:${name}:${variant}`],
  ...more,
});
