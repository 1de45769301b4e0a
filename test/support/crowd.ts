import { existsSync } from 'node:fs';

import { LineProcess, program } from './programs';
import { until } from './wait';

/**
 * Processes that live side by side until they are released, the i-th of which exits with i mod 128.
 * roomForProcesses() returns how many there may be.
 */
export class Crowd {
  private constructor(
    readonly parent: LineProcess,
    readonly pids: readonly number[],
  ) {}

  static async of(count: number): Promise<Crowd> {
    const parent = new LineProcess(program('hold'), [String(count)]);
    const pids: number[] = [];
    while (pids.length < count) {
      const line = await parent.line();
      if (line === undefined) {
        throw new Error(`only ${pids.length} of ${count} processes came: ${parent.stderr}`);
      }
      pids.push(Number(line));
    }
    return new Crowd(parent, pids);
  }

  end(): void {
    this.parent.child.stdin.write('end\n');
  }

  /** Resolves when their parent has reaped all of them. */
  async reaped(): Promise<void> {
    const line = await this.parent.line();
    if (line !== 'reaped') throw new Error(`they were not reaped: ${this.parent.stderr}`);
  }

  /** Waits until the last one is gone, because the next test needs the room. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.parent.child.kill('SIGKILL'); // they see the gate close, and end
    await this.parent.ended;
    const left = () => this.pids.filter((pid) => existsSync(`/proc/${pid}`));
    await until(
      'the crowd to be gone',
      () => left().length === 0,
      () => `left: ${left().join(' ')}`,
    );
  }
}
