import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { writePidfile } from '../../src/process';
import { readVmRecord, type VmEnd, type VmRecord, type VmVerdict } from '../../src/vm';

import { MAIN } from './command';
import { LineProcess } from './programs';
import { TestVm, type VmSettings } from './qemu';
import { until } from './wait';

/** The fields of the daemon's output that tests use. */
export type Said = { event: string; name?: string; message?: string; code?: string } & Partial<
  Omit<VmVerdict, 'event' | 'name'> & VmEnd
> & { isThere?: boolean; watched?: number };

/** `exitwatch vm daemon` with a control directory and a state directory of its own. */
export class TestDaemon {
  readonly folder = mkdtempSync(join(tmpdir(), 'exitwatch-daemon-'));
  controlDir = join(this.folder, 'control');
  readonly stateDir = join(this.folder, 'state');
  readonly intentLog = join(this.stateDir, 'intents');
  /** The output of all daemons that this object has started. */
  readonly said: Said[] = [];
  readonly #vms: TestVm[] = [];
  #process: LineProcess | undefined;
  #isRemoved = false;

  constructor({ isThere = true }: { isThere?: boolean } = {}) {
    if (isThere) mkdirSync(this.controlDir);
  }

  /** Resolves when the daemon is ready. */
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
    await this.#until('the daemon to be ready', () => {
      if (daemon.child.exitCode !== null) throw new Error(`it has ended: ${daemon.stderr}`);
      return this.count('ready') > before;
    });
  }

  async #read(daemon: LineProcess): Promise<void> {
    for await (const line of daemon.lines) {
      // The last line is cut off if the daemon was killed.
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

  /** The first message that fits, as soon as the daemon prints it. */
  until(fits: (said: Said) => boolean, what = fits.toString()): Promise<Said> {
    return this.#until(`the daemon to say ${what}`, () => this.said.find(fits));
  }

  /** The record of a machine, as soon as it fits. */
  recorded(name: string, fits: (record: VmRecord) => boolean): Promise<VmRecord> {
    return this.#until(`a record of ${name}: ${fits.toString()}`, async () => {
      const record = await this.record(name);
      return record !== null && fits(record) && record;
    });
  }

  /** Also ends with the test, so that its waits do not disturb the next test. */
  #until<T>(what: string, look: () => T | Promise<T>) {
    const unlessRemoved = () => {
      if (this.#isRemoved) throw new Error(`the daemon was removed before ${what} came`);
      return look();
    };
    return until(what, unlessRemoved, () => {
      const said = this.said.slice(-20).map((each) => JSON.stringify(each).slice(0, 500));
      return ['the last output of the daemon:', ...said, this.stderr].join('\n');
    });
  }

  /** The message about the end of this machine's process. */
  stopped(vm: TestVm): Promise<Said> {
    return this.#untilOf('stopped', vm);
  }

  found(vm: TestVm): Promise<Said> {
    return this.#untilOf('found', vm);
  }

  #untilOf(wanted: string, { pid }: TestVm): Promise<Said> {
    return this.until(
      ({ event, identity }) => event === wanted && identity?.pid === pid,
      `that process ${pid} is ${wanted}`,
    );
  }

  record(name: string): Promise<VmRecord | null> {
    return readVmRecord(this.stateDir, name);
  }

  /** A virtual machine in the control directory. Resolves when its guest runs. */
  async vm(name: string, settings: VmSettings = {}): Promise<TestVm> {
    const vm = new TestVm({ control: { folder: this.controlDir, name }, ...settings });
    this.#vms.push(vm);
    await vm.booted();
    return vm;
  }

  /** The same, but its manager writes the pidfile. */
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
