import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { spawn, spawnSync, type ChildProcess, type StdioOptions } from 'node:child_process';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { eventLogArguments, logArguments, QmpClient } from '../../src/vm';

import { itAsRootIf, itIf } from './privilege';
import { PROGRAMS, REPOSITORY } from './programs';
import { connectSerial } from './serial';
import { arrives, until } from './wait';

const QEMU = 'qemu-system-x86_64';

/** A QEMU for tests. */
export interface Qemu {
  binary: string;
  /** `null`: there is none. */
  major: number | null;
  /**
   * Declares a test that uses it. Outside CI the test is skipped if it is missing, and its title
   * says why.
   */
  it: jest.It;
}

/** The installed QEMU, which must exist in CI. */
export const INSTALLED: Qemu = qemu(QEMU, `needs ${QEMU}`);

export const itWithQemu: jest.It = INSTALLED.it;

/** The same for tests that use the signal trace. */
export const itWithQemuAsRoot: jest.It = itAsRootIf(hasQemu(), `needs ${QEMU}`);

export function hasQemu(): boolean {
  return INSTALLED.major !== null || process.env['CI'] !== undefined;
}

let backport: Qemu | undefined;

/** Debian's backport of a newer QEMU. The first call fetches it, which takes some seconds. */
export function backportedQemu(): Qemu {
  return (backport ??= fetchBackport());
}

function fetchBackport(): Qemu {
  const script = join(REPOSITORY, 'test', 'qemu', 'fetch.mjs');
  const options = { encoding: 'utf8', timeout: 60_000 } as const;
  const { stdout, stderr, error } = spawnSync(process.execPath, [script], options);
  const [why = ''] = (error?.message ?? stderr).split('\n');
  const binary = stdout.trim();
  const need = `needs Debian's backport of QEMU: ${why}`;
  if (binary === '' && process.env['CI'] !== undefined) throw new Error(need);
  return qemu(binary || 'no-such-qemu', need);
}

function qemu(binary: string, need: string): Qemu {
  const { status, stdout } = spawnSync(binary, ['-version'], { encoding: 'utf8' });
  const [, major] = (status === 0 ? /version (\d+)\./.exec(stdout) : null) ?? [];
  const isThere = major !== undefined;
  return {
    ...{ binary, major: isThere ? Number(major) : null },
    it: itIf(isThere, need),
  };
}

/** A boot sector that obeys bytes on its serial port: see {@link TestVm.press}. */
const OBEDIENT =
  '31 db b0 52 ba f8 03 ee fb f4 84 db 74 09 ba 00 06 ed f6 c4 01 75 45 ba fd 03 ec a8 01 74 e9 ba f8 03' +
  ' ec 3c 70 74 35 3c 33 74 36 3c 34 74 37 3c 72 74 3c 3c 6b 74 43 3c 78 74 45 3c 64 74 49 3c 77 74 4c 3c' +
  ' 74 74 51 3c 61 75 bd fe c3 ba 02 06 b8 00 01 ef b0 41 ba f8 03 ee eb ac b8 00 20 eb 08 b8 00 24 eb 03' +
  ' b8 00 28 ba 04 06 ef eb 99 ba f9 0c b0 02 ee b0 06 ee eb 8e b0 fe e6 64 eb 88 ba 05 05 b0 01 ee eb 80' +
  ' b0 10 e6 f4 e9 79 ff ba 43 04 b0 0f ee e9 70 ff fa 31 c0 8e d8 0f 01 1e a3 7c cc 00 00 00 00 00 00';

/** A boot sector that touches all of its memory, up to a GiB. */
const HUNGRY =
  'fa 31 c0 8e d8 e4 92 0c 02 e6 92 0f 01 16 58 7c 0f 20 c0 0c 01 0f 22 c0 66 ea 20 7c 00 00 08 00 66 b8' +
  ' 10 00 8e d8 bf 00 00 10 00 c6 07 5a 81 c7 00 10 00 00 81 ff 00 00 ff 3f 72 ef f4 eb fd 90' +
  ' 00 00 00 00 00 00 00 00 ff ff 00 00 00 9a cf 00 ff ff 00 00 00 92 cf 00 17 00 40 7c 00 00';

function bootSector(hex: string): Buffer {
  const sector = Buffer.alloc(512);
  Buffer.from(hex.replaceAll(' ', ''), 'hex').copy(sector);
  sector.writeUInt16LE(0xaa55, 510);
  return sector;
}

/** The arguments with which QEMU boots that sector from a file, which this function writes. */
export function bootFrom(image: string, hex = OBEDIENT): string[] {
  writeFileSync(image, bootSector(hex));
  return ['-drive', `if=floppy,format=raw,readonly=on,file=${image}`, '-boot', 'a'];
}

export interface VmSettings {
  /** The QEMU binary; by default the installed one. */
  qemu?: string;
  args?: string[];
  machine?: string;
  memory?: number;
  guest?: 'obedient' | 'hungry';
  daemonize?: boolean;
  /** A command that runs QEMU. */
  before?: string[];
  env?: NodeJS.ProcessEnv;
  /** The machine ends before its guest can print anything, so its output is not read. */
  isEarly?: boolean;
  /**
   * Names its files in this directory, and adds a QMP socket. With `withoutPidfile` its manager
   * writes the pidfile.
   */
  control?: { folder: string; name: string; withoutPidfile?: boolean };
  /**
   * The manager's arguments, which replace these files and sockets. It gets a folder for its own
   * files.
   */
  manager?: (folder: string) => string[];
  stdio?: StdioOptions;
}

/** A real virtual machine with a guest of 512 bytes. */
export class TestVm {
  readonly folder = mkdtempSync(join(tmpdir(), 'exitwatch-vm-'));
  readonly child: ChildProcess;
  readonly pidfile: string;
  readonly eventLog: string;
  readonly log: string;
  readonly startedAt = Date.now();
  #serial: Socket | undefined;
  #printed = '';
  #other: QmpClient | undefined;

  constructor({
    qemu = QEMU,
    args = [],
    machine = 'pc',
    memory = 32,
    guest,
    daemonize,
    before = [],
    env,
    isEarly = false,
    control,
    manager,
    stdio = 'ignore',
  }: VmSettings) {
    const at = (file: string) =>
      control === undefined
        ? join(this.folder, file)
        : join(control.folder, `${control.name}.${file}`);
    this.pidfile = control?.withoutPidfile === true ? join(this.folder, 'pid') : at('pid');
    this.eventLog = at('events');
    this.log = at('log');
    const sockets = control === undefined ? this.sockets : [at('qmp'), ...this.sockets];
    const image = join(this.folder, 'image');
    const floppy = bootFrom(image, guest === 'hungry' ? HUNGRY : OBEDIENT);
    const drive =
      machine === 'pc'
        ? floppy
        : [
            ...['-drive', `if=none,id=d0,format=raw,readonly=on,file=${image}`],
            ...['-device', 'isa-fdc', '-device', 'floppy,drive=d0'],
          ];
    const [command = '', ...rest] = [
      ...before,
      qemu,
      ...[
        '-accel',
        'tcg',
        '-machine',
        machine,
        '-m',
        String(memory),
        '-nodefaults',
        '-display',
        'none',
      ],
      ...['-no-user-config', ...drive],
      ...[
        '-serial', // Wait for a client, so that the guest's first word is not lost.
        `unix:${join(this.folder, 'serial')},server=on,wait=${isEarly ? 'off' : 'on'}`,
      ],
      ...(manager?.(this.folder) ?? [
        ...['-pidfile', this.pidfile],
        ...sockets.flatMap((path) => ['-qmp', `unix:${path},server=on,wait=off`]),
        ...eventLogArguments(this.eventLog),
        ...logArguments(this.log),
      ]),
      ...(daemonize === true ? ['-daemonize'] : []),
      ...args,
    ];
    this.child = spawn(command, rest, {
      stdio,
      env: { ...process.env, ...env, CRASH_WHEN: join(this.folder, 'crash') },
    });
    this.child.on('error', () => undefined);
    if (!isEarly) this.#listen().catch(() => undefined); // booted() reports the error
  }

  /** Its QMP sockets, for one client each. The last one is for {@link TestVm.ask}. */
  get sockets(): string[] {
    return ['qmp0', 'qmp1', 'qmp2'].map((name) => join(this.folder, name));
  }

  /** The pid of the process. With `daemonize` it is known once QEMU has written it to a file. */
  get pid(): number {
    return this.child.pid ?? 0;
  }

  async daemonPid(pidfile = this.pidfile): Promise<number> {
    const isWritten = () => this.child.exitCode !== null && existsSync(pidfile);
    await until(`QEMU to write ${pidfile}`, isWritten, this.#known);
    return Number(readFileSync(pidfile, 'latin1'));
  }

  /** Resolves when the guest runs and obeys. */
  async booted(): Promise<void> {
    await until(
      `the guest of QEMU ${this.pid} to run`,
      () => this.#printed.includes('R'),
      this.#known,
    );
  }

  async #listen(): Promise<void> {
    const path = join(this.folder, 'serial');
    this.#serial = await until(
      `QEMU ${this.pid} to listen on ${path}`,
      () => connectSerial(path, (text) => (this.#printed += text)),
      this.#known,
    );
  }

  /**
   * Makes the guest do something. p: S5, 3: S3, 4: S4, r: reset by CF9, k: reset by the keyboard
   * controller, t: triple fault, x: pvpanic, d: isa-debug-exit, w: watchdog, a: obey the power
   * button from now on.
   */
  async press(key: string): Promise<void> {
    const before = this.#printed.length;
    this.#serial?.write(key);
    if (key !== 'a') return;
    const hasObeyed = () => this.#printed.slice(before).includes('A');
    await until(`the guest of QEMU ${this.pid} to obey its power button`, hasObeyed, this.#known);
  }

  /** Sends a command from a management client other than exitwatch. */
  async ask(command: string, args?: Record<string, unknown>): Promise<unknown> {
    const client = this.#client();
    if (!client.isReady) {
      const ready = new Promise<void>((resolve) => client.once('ready', resolve));
      await arrives(`QMP of QEMU ${this.pid} to be ready for ${command}`, ready, this.#known);
    }
    return arrives(`the answer of QEMU to ${command}`, client.execute(command, args), this.#known);
  }

  /**
   * Makes that client listen from now on. The returned function resolves when it has received such
   * an event.
   */
  async listenTo(wanted: string): Promise<() => Promise<void>> {
    await this.status();
    const heard = new Promise<void>((resolve) => {
      this.#client().on('event', ({ event }) => {
        if (event === wanted) resolve();
      });
    });
    return () => arrives(`QEMU ${this.pid} to report ${wanted}`, heard, this.#known);
  }

  #client(): QmpClient {
    if (this.#other === undefined) {
      this.#other = new QmpClient(this.sockets[2] ?? '');
      this.#other.on('error', () => undefined);
    }
    return this.#other;
  }

  /** The machine's run state. */
  async status(): Promise<string> {
    return ((await this.ask('query-status')) as { status: string }).status;
  }

  async untilStatus(wanted: string): Promise<void> {
    let status: string | undefined;
    const isWanted = async () => (status = await this.status()) === wanted;
    await until(
      `QEMU ${this.pid} to be ${wanted}`,
      isWanted,
      () => `it is ${status ?? 'unknown'}\n${this.#known()}`,
    );
  }

  /** The state so far, for the error of a wait that times out. */
  readonly #known = (): string => {
    const { exitCode, signalCode } = this.child;
    const log = existsSync(this.log) ? readFileSync(this.log, 'utf8') : '';
    return [
      exitCode === null && signalCode === null
        ? 'it runs'
        : `it has ended (${signalCode ?? exitCode})`,
      `its guest has printed: ${JSON.stringify(this.#printed)}`,
      `its log: ${log.slice(-2000)}`,
    ].join('\n');
  };

  /** Makes the loaded library do its harm. */
  crash(): void {
    writeFileSync(join(this.folder, 'crash'), '');
  }

  remove(): void {
    this.#serial?.destroy();
    this.#other?.close();
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill('SIGKILL');
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** The environment that loads a library into QEMU which does this on request. */
export function crashing(how: 'fault' | 'abort' | 'exit'): NodeJS.ProcessEnv {
  return { LD_PRELOAD: join(PROGRAMS, 'crash.so'), CRASH_HOW: how };
}
