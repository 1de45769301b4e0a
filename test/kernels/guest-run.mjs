import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { boot } from './boot.mjs';
import { fetchKernel } from './debian-kernel.mjs';
import { jobArchive } from './image.mjs';

/**
 * QEMU before 8.1 may translate code that the guest is just patching on another processor, and run
 * the breakpoint of that patch when it is over: the kernel dies with this. No real processor does.
 */
const TRANSLATION_RACE = /int3: 0000 \[#1\]/;

const MOST_BOOTS = 3;

/** A guest that ended before its work was done, and not by what it ran. */
class EmulatorError extends Error {}

/**
 * Calls `attempt`, which runs a guest, and again each time QEMU itself crashed that, up to MOST_BOOTS
 * times in all. Nothing that an attempt has seen may count for the next.
 */
export async function despiteEmulator(name, attempt) {
  for (let boots = 1; ; boots++) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof EmulatorError) || boots === MOST_BOOTS) throw error;
      console.error(`${name}: ${error.message}; booting again`);
    }
  }
}

/**
 * Boots the newest kernel of that name and runs a job in it. Calls `onMessage` with each message of
 * the guest. Resolves with the Debian version of the kernel, and rejects if the guest does not
 * finish.
 */
export async function runGuest(name, { imageFor, job, files = [], parameters = '', onMessage }) {
  const { arch, file: kernel, version } = fetchKernel(name);
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-kernel-'));
  const consoleFile = join(folder, 'console');
  let hasEnded = false;
  try {
    const initramfs = join(folder, 'initramfs');
    writeFileSync(initramfs, Buffer.concat([imageFor(arch), jobArchive(job, files)]));
    await boot({
      ...{ arch, kernel, initramfs, consoleFile, parameters },
      onMessage: (message) => {
        if (message.type === 'end') hasEnded = true;
        onMessage(message);
      },
    });
    if (hasEnded) return version;
    if (TRANSLATION_RACE.test(readFileSync(consoleFile, 'latin1')))
      throw new EmulatorError('QEMU crashed the guest: it ran a breakpoint already removed');
    throw new Error('the guest exited before its work was done');
  } catch (error) {
    console.error(readFileSync(consoleFile, 'latin1').slice(-4000));
    throw error;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
