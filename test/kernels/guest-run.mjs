import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { boot } from './boot.mjs';
import { fetchKernel } from './debian-kernel.mjs';
import { jobArchive } from './image.mjs';

/**
 * Boots the newest kernel of that name and runs a job in it. Calls `onMessage` with each message of
 * the guest. Resolves with the Debian version of the kernel, and rejects if the guest does not
 * finish.
 */
export async function runGuest(name, { imageFor, job, files = [], onMessage }) {
  const { arch, file: kernel, version } = fetchKernel(name);
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-kernel-'));
  const consoleFile = join(folder, 'console');
  let hasEnded = false;
  try {
    const initramfs = join(folder, 'initramfs');
    writeFileSync(initramfs, Buffer.concat([imageFor(arch), jobArchive(job, files)]));
    await boot({
      ...{ arch, kernel, initramfs, consoleFile },
      onMessage: (message) => {
        if (message.type === 'end') hasEnded = true;
        onMessage(message);
      },
    });
    if (!hasEnded) throw new Error('the guest exited before its work was done');
    return version;
  } catch (error) {
    console.error(readFileSync(consoleFile, 'latin1').slice(-4000));
    throw error;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
