import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';

import { ExitwatchError } from '../common/errors.js';
import { loadAddon } from '../native/load-addon.js';

/** The first of the descriptors that systemd passes (sd_listen_fds(3)). */
const FIRST = 3;

/** What systemd has passed to this process, by name; taken once. */
let received: Map<string, number> | undefined;

/** Names of what this process has stored. */
const stored = new Set<string>();

/**
 * systemd's descriptor store (FileDescriptorStoreMax= of systemd.service(5)): it holds descriptors for
 * a service, and passes them to it when it starts again.
 */
export class DescriptorStore {
  readonly #socket: string;
  readonly #prefix: string;
  readonly #received: Map<string, number>;
  /** How many the store takes. */
  readonly most: number;

  private constructor(socket: string, stateDir: string, most: number) {
    this.#socket = socket;
    const hash = createHash('sha256').update(stateDir).digest('hex').slice(0, 16);
    this.#prefix = `exitwatch-${hash}-`;
    this.most = most;
    received ??= takeReceived();
    this.#received = received;
  }

  /** The store of the service that this process is; `null` if it has none. */
  static of(stateDir: string): DescriptorStore | null {
    const { NOTIFY_SOCKET: socket } = process.env;
    if (socket === undefined || socket === '') return null;
    // A child of the service has inherited its environment, but systemd stores nothing for it
    // (NotifyAccess=main). systemd 248 and later says whose it is.
    const { SYSTEMD_EXEC_PID: main } = process.env;
    if (main !== undefined && Number(main) !== process.pid) return null;
    const most = sizeOfStore();
    return most > 0 ? new DescriptorStore(socket, stateDir, most) : null;
  }

  /** What is stored for this state directory. */
  get names(): string[] {
    return [...new Set([...this.#received.keys(), ...stored])]
      .filter((name) => name.startsWith(this.#prefix))
      .map((name) => name.slice(this.#prefix.length));
  }

  /** A descriptor that was stored before this process began; it belongs to this store. */
  descriptor(name: string): number | undefined {
    return this.#received.get(this.#prefix + name);
  }

  /** @throws ExitwatchError `ERR_EXITWATCH_RECORDER_FULL`, `ERR_EXITWATCH_SYSTEM` */
  store(name: string, fd: number): void {
    if (this.names.length >= this.most) {
      throw new ExitwatchError(
        'ERR_EXITWATCH_RECORDER_FULL',
        `systemd stores ${this.most} descriptors for this service`,
        { remedy: 'raise FileDescriptorStoreMax= of its unit' },
      );
    }
    // With FDPOLL=0 (systemd 246), a pidfd is kept when its process has exited.
    this.#notify(`FDSTORE=1\nFDNAME=${this.#prefix}${name}\nFDPOLL=0`, [fd]);
    stored.add(this.#prefix + name);
  }

  remove(name: string): void {
    this.#notify(`FDSTOREREMOVE=1\nFDNAME=${this.#prefix}${name}`, []);
    stored.delete(this.#prefix + name);
    const fd = this.descriptor(name);
    if (fd === undefined) return;
    this.#received.delete(this.#prefix + name);
    closeSync(fd);
  }

  #notify(text: string, descriptors: readonly number[]): void {
    try {
      loadAddon().sendDatagram(this.#socket, text, descriptors);
    } catch (error) {
      const { message } = error as Error;
      const detail = `systemd cannot be reached: ${message}`;
      throw new ExitwatchError('ERR_EXITWATCH_SYSTEM', detail, { cause: error });
    }
  }
}

function takeReceived(): Map<string, number> {
  const { LISTEN_PID: pid, LISTEN_FDS: count, LISTEN_FDNAMES: text = '' } = process.env;
  const descriptors = new Map<string, number>();
  if (Number(pid) !== process.pid) return descriptors;
  const names = text.split(':');
  for (let i = 0; i < Number(count); i++) {
    const name = names[i] ?? '';
    if (!name.startsWith('exitwatch-')) continue;
    // The others are for the program that we are part of.
    if (loadAddon().keepFromChildren(FIRST + i)) descriptors.set(name, FIRST + i);
  }
  return descriptors;
}

/** How many descriptors systemd stores for this service. systemd 254 says it in the environment. */
function sizeOfStore(): number {
  const { FDSTORE: size } = process.env;
  if (size !== undefined) return Number(size) || 0;
  const unit = unitOf(process.pid);
  if (unit === null) return 0;
  const args = ['show', '--property=FileDescriptorStoreMax', '--value', '--', unit];
  const { stdout, status } = spawnSync('systemctl', args, { encoding: 'utf8', timeout: 5000 });
  return status === 0 ? Number(stdout.trim()) || 0 : 0;
}

/** The unit is named like the cgroup (systemd.resource-control(5)). */
function unitOf(pid: number): string | null {
  const text = readFileSync(`/proc/${pid}/cgroup`, 'utf8');
  for (const line of text.split('\n')) {
    const [, , path = ''] = line.split(':');
    const name = basename(path);
    if (name.endsWith('.service')) return name;
  }
  return null;
}
