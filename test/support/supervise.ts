import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { ConfiguredMachine, ConfiguredService } from '../../src/supervisor/index.js';

import { call, callWith, MAIN } from './command';
import { forgetAll } from './keeper';
import { LineProcess } from './programs';
import { until } from './wait';

export type Described = ConfiguredService | ConfiguredMachine;

/** What `exitwatch service list --json` prints of a service. */
export interface Listed {
  name: string;
  phase: string;
  pid: number | null;
  isReady: boolean;
  restarts: number;
  waitsFor: string[];
  lastEnd: { because: string; reason: string; how: string; signal: string | null } | null;
  lastStory: { event: string; signal?: string | null; sender?: { pid: number } | null } | null;
}

/** `exitwatch supervise`, with a folder and a configuration of its own. */
export class SuperviseHost implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'exitwatch-supervise-'));
  readonly config = join(this.folder, 'services.json');
  readonly stateDir = join(this.folder, 'state');
  readonly #args: readonly string[];
  process: LineProcess | undefined;
  /** What it has printed, also before it was restarted. */
  readonly told: Record<string, unknown>[] = [];

  readonly #isContained: boolean;

  /** @param isContained its services end with a pid namespace, and none is left */
  constructor(args: readonly string[] = [], isContained = false) {
    this.#args = args;
    this.#isContained = isContained;
  }

  static async of(...services: Described[]): Promise<SuperviseHost> {
    const host = new SuperviseHost();
    host.write(...services);
    await host.start();
    return host;
  }

  write(...services: Described[]): void {
    writeFileSync(this.config, JSON.stringify({ services }, null, 2));
  }

  path(...names: string[]): string {
    return join(this.folder, ...names);
  }

  /** The folder of the supervisor. */
  own(...names: string[]): string {
    return join(this.stateDir, 'supervise', ...names);
  }

  read(...names: string[]): string {
    return readFileSync(this.path(...names), 'utf8');
  }

  /**
   * Resolves when it has applied its configuration, or has ended.
   *
   * @param before a command that runs it
   */
  async start(before: readonly string[] = []): Promise<void> {
    const [command = '', ...args] = [
      ...[...before, process.execPath, MAIN, 'supervise', this.config],
      ...['--state-dir', this.stateDir, '--json', ...this.#args],
    ];
    const started = new LineProcess(command, args);
    this.process = started;
    const from = this.told.length;
    let isOver = false;
    void (async () => {
      for await (const line of started.lines) {
        this.told.push(JSON.parse(line) as Record<string, unknown>);
      }
      isOver = true;
    })();
    await until(
      'the supervisor to be ready',
      () =>
        isOver ||
        this.told.slice(from).some(({ event }) => event === 'applied' || event === 'warning'),
      () => this.story(),
    );
  }

  /** Ends it as if it had crashed. */
  async crash(): Promise<void> {
    this.process?.child.kill('SIGKILL');
    await this.process?.ended;
  }

  /** Asks it to end. Resolves with its exit code. */
  async end(): Promise<number | null | undefined> {
    this.process?.child.kill('SIGTERM');
    return this.process?.ended;
  }

  /** Starts it in another boot of the machine, as far as it can tell. Requires root. */
  async startInAnotherBoot(): Promise<void> {
    const file = this.path('boot_id');
    writeFileSync(file, '11111111-2222-4333-8444-555555555555\n');
    const script = `mount --bind ${file} /proc/sys/kernel/random/boot_id && exec "$@"`;
    await this.start(['unshare', '--mount', 'sh', '-c', script, 'sh']);
  }

  /** The processes of its keeper. */
  keepers(): number[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .filter((name) => {
        try {
          const comm = readFileSync(`/proc/${name}/comm`, 'latin1').trim();
          const command = readFileSync(`/proc/${name}/cmdline`, 'latin1');
          return comm === 'exitwatch-keepr' && command.includes(this.own('keeper'));
        } catch {
          return false;
        }
      })
      .map(Number);
  }

  service(...args: string[]) {
    return call('service', ...args, '--state-dir', this.stateDir);
  }

  serviceAs(before: readonly string[], ...args: string[]) {
    return callWith(before, 'service', ...args, '--state-dir', this.stateDir);
  }

  async list(): Promise<Listed[]> {
    const { code, lines, stderr } = await this.service('list', '--json');
    if (code !== 0) throw new Error(`service list ended with ${code}: ${stderr}`);
    return lines.map((line) => JSON.parse(line) as Listed);
  }

  async listed(name: string): Promise<Listed> {
    const found = (await this.list()).find((each) => each.name === name);
    if (found === undefined) throw new Error(`there is no service ${name}`);
    return found;
  }

  /** Once the list says so. */
  phase(name: string, phase: string): Promise<Listed> {
    let last: unknown;
    return until(
      `${name} to be ${phase}`,
      async () => {
        const found = await this.listed(name);
        last = found;
        return found.phase === phase ? found : null;
      },
      () => `${JSON.stringify(last)}\n${this.story()}`,
    );
  }

  /** What it has printed of one kind. */
  of(event: string): Record<string, unknown>[] {
    return this.told.filter((each) => each['event'] === event);
  }

  printed(event: string, number = 1): Promise<Record<string, unknown>> {
    return until(
      `line ${number} of ${event}`,
      () => this.of(event)[number - 1],
      () => this.story(),
    );
  }

  story(): string {
    const lines = this.told.map((each) => JSON.stringify(each).slice(0, 300));
    return [...lines, this.process?.stderr ?? ''].join('\n');
  }

  async #clear(): Promise<void> {
    await this.crash();
    this.write();
    await this.start();
    await until('nothing to be left', async () => (await this.list()).length === 0);
    await this.end();
    await forgetAll(this.own());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // Without a state folder no supervisor ever ran here.
    if (!this.#isContained && existsSync(this.stateDir)) await this.#clear();
    rmSync(this.folder, { recursive: true, force: true });
  }
}
