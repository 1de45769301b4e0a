import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import { writePidfile } from '../../src/process';
import { readVmRecord, type VmEnd, type VmRecord, type VmStop } from '../../src/vm';

import { MAIN } from './command';
import { LineProcess } from './programs';
import { TestVm, type VmSettings } from './qemu';

/** What the daemon prints, as far as tests look at it. */
export type Said = { event: string; name?: string; message?: string; code?: string } & Partial<
  Omit<VmStop, 'event' | 'name'> & VmEnd
> & { isThere?: boolean; watched?: number };

/** Less than a test has, so that it can say what it has waited for in vain. */
const PATIENCE_MS = 45_000;

/** `exitwatch vm daemon`, with a control and a state directory of its own. */
export class TestDaemon {
  readonly folder = mkdtempSync(join(tmpdir(), 'exitwatch-daemon-'));
  controlDir = join(this.folder, 'control');
  readonly stateDir = join(this.folder, 'state');
  readonly intentLog = join(this.stateDir, 'intents');
  /** By all that have run. */
  readonly said: Said[] = [];
  readonly #vms: TestVm[] = [];
  #process: LineProcess | undefined;
  #isRemoved = false;

  constructor({ isThere = true }: { isThere?: boolean } = {}) {
    if (isThere) mkdirSync(this.controlDir);
  }

  /** Resolves when it is ready. */
  async start(args: readonly string[] = [], env: NodeJS.ProcessEnv = {}): Promise<void> {
    const before = this.count('ready');
    const directories = ['--control-dir', this.controlDir, '--state-dir', this.stateDir];
    const daemon = new LineProcess(
      process.execPath,
      [MAIN, 'vm', 'daemon', ...directories, '--json', ...args],
      { env: { ...process.env, ...env } },
    );
    this.#process = daemon;
    void this.#read(daemon);
    while (this.count('ready') === before) {
      if (daemon.child.exitCode !== null) throw new Error(`it has ended: ${daemon.stderr}`);
      await setTimeout(2);
    }
  }

  async #read(daemon: LineProcess): Promise<void> {
    for (let line = await daemon.line(); line !== undefined; line = await daemon.line()) {
      // Cut off where it was killed.
      if (line.endsWith('}')) this.said.push(JSON.parse(line) as Said);
    }
  }

  get pid(): number {
    return this.#process?.pid ?? 0;
  }

  get stderr(): string {
    return this.#process?.stderr ?? '';
  }

  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.#process?.child.kill(signal);
    return (await this.#process?.ended) ?? null;
  }

  freeze(): Promise<void> | undefined {
    return this.#process?.stop();
  }

  thaw(): void {
    this.#process?.child.kill('SIGCONT');
  }

  count(event: string): number {
    return this.said.filter((each) => each.event === event).length;
  }

  /** The first that fits, as soon as it was said. */
  until(fits: (said: Said) => boolean): Promise<Said> {
    return this.#wait(() => this.said.find(fits));
  }

  /** The record of a machine, as soon as it fits. */
  recorded(name: string, fits: (record: VmRecord) => boolean): Promise<VmRecord> {
    return this.#wait(async () => {
      const record = await this.record(name);
      return record !== null && fits(record) ? record : undefined;
    });
  }

  /** Ends with the test, too: what one waits for in vain is nothing to the next one. */
  async #wait<T>(look: () => T | undefined | Promise<T | undefined>): Promise<T> {
    const deadline = performance.now() + PATIENCE_MS;
    while (!this.#isRemoved && performance.now() < deadline) {
      const found = await look();
      if (found !== undefined) return found;
      await setTimeout(2);
    }
    const said = this.said.map((each) => JSON.stringify(each));
    throw new Error(['it never came; the daemon has said:', ...said, this.stderr].join('\n'));
  }

  /** Of this process. */
  stopped(vm: TestVm): Promise<Said> {
    return this.until(({ event, identity }) => event === 'stopped' && identity?.pid === vm.pid);
  }

  found(vm: TestVm): Promise<Said> {
    return this.until(({ event, identity }) => event === 'found' && identity?.pid === vm.pid);
  }

  record(name: string): Promise<VmRecord | null> {
    return readVmRecord(this.stateDir, name);
  }

  /** A virtual machine in its control directory, whose guest runs. */
  async vm(name: string, settings: VmSettings = {}): Promise<TestVm> {
    const vm = new TestVm({ control: { folder: this.controlDir, name }, ...settings });
    this.#vms.push(vm);
    await vm.booted();
    return vm;
  }

  /** The same; its manager writes down which process it is. */
  async registeredVm(name: string): Promise<TestVm> {
    const control = { folder: this.controlDir, name, withoutPidfile: true };
    const vm = new TestVm({ control });
    this.#vms.push(vm);
    await writePidfile(join(this.controlDir, `${name}.pid`), vm.pid);
    await vm.booted();
    return vm;
  }

  async remove(): Promise<void> {
    this.#isRemoved = true;
    await this.end('SIGKILL');
    for (const vm of this.#vms) vm.remove();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
