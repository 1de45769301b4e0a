import { boot } from './boot.mjs';
import { fetchKernel } from './debian-kernel.mjs';
import { jobArchive } from './image.mjs';

/**
 * Boots the newest kernel of that name and runs a job in it. Calls `onMessage` with each message of
 * the guest. Resolves with the Debian version of the kernel, and rejects if the guest does not
 * finish.
 */
export async function runGuest(name, { imageFor, job, files = [], parameters = '', onMessage }) {
  const { arch, file: kernel, version } = fetchKernel(name);
  const initramfs = Buffer.concat([await imageFor(arch), jobArchive(job, files)]);
  await boot({ arch, kernel, initramfs, parameters, onMessage });
  return version;
}
