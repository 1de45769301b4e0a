import type { JournalRow } from '../../src/journal';

import { MemoryFolder } from './bpffs';
import { call, MAIN } from './command';
import { LineProcess } from './programs';

/** `exitwatch record`, with a state directory and a BPF file system of its own; needs root. */
export class TestRecord {
  readonly #memory = new MemoryFolder();
  readonly stateDir = this.#memory.stateDir;
  readonly pinDir = this.#memory.pinDir;
  #process: LineProcess | undefined;

  get dir(): string {
    return `${this.stateDir}/journal`;
  }

  get running(): LineProcess {
    if (this.#process === undefined) throw new Error('not started');
    return this.#process;
  }

  /** Starts it; `ready` is what it says first. */
  async start(...args: string[]): Promise<{ memory: string; traced: boolean }> {
    const record = this.spawn(...args);
    const line = await record.line();
    if (line === undefined) throw new Error(`it has ended: ${record.stderr}`);
    return JSON.parse(line) as { memory: string; traced: boolean };
  }

  /** The same without waiting for anything. */
  spawn(...args: string[]): LineProcess {
    const { stateDir, pinDir } = this.#memory;
    const places = ['--state-dir', stateDir, '--pin-dir', pinDir];
    this.#process = new LineProcess(process.execPath, [
      MAIN,
      'record',
      ...places,
      '--json',
      ...args,
    ]);
    return this.#process;
  }

  async kill(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.running.child.kill(signal);
    return this.running.ended;
  }

  /** What `history` prints. */
  async history(...args: string[]): Promise<JournalRow[]> {
    const { code, lines, stderr } = await call(
      'history',
      '--state-dir',
      this.stateDir,
      '--json',
      ...args,
    );
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return lines.map((line) => JSON.parse(line) as JournalRow);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { child } = this.running;
    if (child.exitCode === null && child.signalCode === null) await this.kill('SIGKILL');
    this.#memory[Symbol.dispose]();
  }
}
