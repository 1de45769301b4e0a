import type { Socket } from 'node:net';

import { QmpClient } from '../../src/vm';
import type { ConfiguredMachine } from '../../src/supervisor/index.js';

import { bootFrom } from './qemu';
import { connectSerial } from './serial';
import type { SuperviseHost } from './supervise';
import { arrives, until } from './wait';

/** A machine of `exitwatch supervise` with a guest that obeys its serial port: see TestVm.press(). */
export class SupervisedMachine {
  readonly #host: SuperviseHost;
  readonly #name: string;
  #serial: Socket | undefined;
  #printed = '';

  constructor(host: SuperviseHost, name = 'vm1') {
    this.#host = host;
    this.#name = name;
  }

  /** Its description. It waits for somebody at its serial port, so that its first word is not lost. */
  describe(more: Partial<ConfiguredMachine> = {}): ConfiguredMachine {
    return {
      ...{ name: this.#name, kind: 'vm', command: 'qemu-system-x86_64' },
      args: [
        ...['-accel', 'tcg', '-machine', 'pc', '-m', '32', '-nodefaults', '-display', 'none'],
        ...['-no-user-config', ...bootFrom(this.#host.path(`${this.#name}.image`))],
        ...['-serial', `unix:${this.#path},server=on,wait=on`],
      ],
      stop: { powerdownMs: 3000, graceMs: 3000 },
      ...more,
    };
  }

  /** Resolves with its pid when its guest runs and obeys. */
  async booted(): Promise<number> {
    this.#serial?.destroy();
    this.#printed = '';
    this.#serial = await until('somebody to listen at the serial port', () =>
      connectSerial(this.#path, (text) => (this.#printed += text)),
    );
    await until(
      'its guest to run',
      () => this.#printed.includes('R'),
      () => this.#host.story(),
    );
    const { pid } = await this.#host.phase(this.#name, 'running');
    return pid ?? 0;
  }

  /** See TestVm.press(). */
  async press(key: string): Promise<void> {
    this.#serial?.write(key);
    if (key === 'a') await until('its guest to obey its button', () => this.#printed.includes('A'));
  }

  /** As a management client that is not ours. */
  async ask(command: string, args?: Record<string, unknown>): Promise<unknown> {
    const client = new QmpClient(this.#host.own('machines', `${this.#name}.control`));
    client.on('error', () => undefined);
    await arrives('QMP to be ready', new Promise<void>((resolve) => client.once('ready', resolve)));
    try {
      return await arrives(`the answer to ${command}`, client.execute(command, args));
    } finally {
      client.close();
    }
  }

  close(): void {
    this.#serial?.destroy();
  }

  get #path(): string {
    return this.#host.path(`${this.#name}.serial`);
  }
}
