import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';

/** A program that reads exits, while it runs. */
export class Contender {
  #child;
  #lines;
  #printed = 0;
  #ended;

  constructor({ command, env, tells }) {
    const [file, ...args] = command;
    this.#child = spawn(file, args, { env: { ...process.env, ...env } });
    this.#ended = once(this.#child, 'close');
    this.#child.stderr.resume();
    if (tells) {
      this.#lines = createInterface(this.#child.stdout)[Symbol.asyncIterator]();
    } else {
      this.#child.stdout.on('data', (chunk) => {
        for (const byte of chunk) if (byte === 0x0a) this.#printed++;
      });
    }
  }

  /** Resolves when the program reads. */
  async ready() {
    if (this.#lines === undefined) return setTimeout(1500);
    const { value } = await this.#lines.next();
    if (!value?.startsWith('ready')) throw new Error(`${this.#child.spawnfile} did not start`);
    return value;
  }

  /** The CPU time that all of its threads have used so far, in nanoseconds, from schedstat. */
  cpuNs() {
    const tasks = `/proc/${this.#child.pid}/task`;
    return readdirSync(tasks).reduce((sum, task) => {
      const [ran = '0'] = readFileSync(`${tasks}/${task}/schedstat`, 'latin1').split(' ');
      return sum + Number(ran);
    }, 0);
  }

  peakBytes() {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, 'latin1');
    return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1024;
  }

  /** Ends the program. Resolves with its own report, or with the number of lines it printed. */
  async finish() {
    if (this.#lines === undefined) {
      this.#child.kill('SIGINT');
      await this.#ended;
      return { seen: this.#printed, p50Us: null, p99Us: null };
    }
    this.#child.stdin.end();
    const { value } = await this.#lines.next();
    await this.#ended;
    return JSON.parse(value);
  }
}
