import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { GuestAgentClient } from '../../src/vm/qemu/guest-agent-client';

import { itIf } from './privilege';
import { REPOSITORY } from './programs';
import { hasQemu, TestVm, type VmSettings } from './qemu';
import { until } from './wait';

interface Image {
  kernel: string;
  initramfs: string;
}

/** Built once from Debian's packages; `null`: they are unavailable, which is an error in CI. */
function findImage(): Image | null {
  if (!hasQemu() || process.arch !== 'x64') return null;
  try {
    const maker = join(REPOSITORY, 'test', 'kernels', 'agent-guest.mjs');
    const printed = execFileSync(process.execPath, [maker], { encoding: 'utf8', stdio: 'pipe' });
    return JSON.parse(printed) as Image;
  } catch (error) {
    if (process.env['CI'] !== undefined) throw error;
    return null;
  }
}

const image = findImage();

export const itWithAgent = itIf(image !== null, "needs QEMU, and Debian's packages");

/** A virtual machine with Linux and QEMU's guest agent. */
export class AgentVm extends TestVm {
  readonly agent: string;
  readonly #channel: string;

  constructor(settings: VmSettings = {}) {
    const channel = mkdtempSync(join(tmpdir(), 'exitwatch-agent-'));
    const agent = join(channel, 'agent');
    const { kernel = '', initramfs = '' } = image ?? {};
    super({
      memory: 256,
      ...settings,
      args: [
        ...['-kernel', kernel, '-initrd', initramfs],
        ...['-append', 'console=ttyS0 loglevel=0 panic=-1 mitigations=off nokaslr'],
        ...['-chardev', `socket,id=agent,path=${agent},server=on,wait=off`],
        ...['-device', 'virtio-serial-pci'],
        ...['-device', 'virtserialport,chardev=agent,name=org.qemu.guest_agent.0'],
        ...(settings.args ?? []),
      ],
    });
    this.agent = agent;
    this.#channel = channel;
  }

  /** Resolves when the agent answers. */
  override async booted(): Promise<void> {
    await super.booted();
    let refusal: unknown;
    const answers = async () => {
      const client = new GuestAgentClient(this.agent);
      try {
        await client.synchronize(500);
        return true;
      } catch (error) {
        refusal = error; // it has not opened its channel yet
        return false;
      } finally {
        client.close();
      }
    };
    await until(`the guest agent of QEMU ${this.pid} to answer`, answers, () => String(refusal));
  }

  override remove(): void {
    super.remove();
    rmSync(this.#channel, { recursive: true, force: true });
  }
}
