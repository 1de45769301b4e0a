import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const QEMU = { x64: 'qemu-system-x86_64', arm64: 'qemu-system-aarch64' };

/** Always TCG: a nested KVM may hang while a kernel decompresses itself. */
const MACHINE = {
  x64: ['-cpu', 'max,la57=off', '-serial', 'file:CONSOLE', '-serial', 'stdio'],
  arm64: [
    ...['-machine', 'virt', '-cpu', 'cortex-a72', '-serial', 'file:CONSOLE'],
    ...['-chardev', 'stdio,id=results', '-device', 'pci-serial,chardev=results'],
  ],
};

const CONSOLE = { x64: 'ttyS0', arm64: 'ttyAMA0' };

/** Longer than any pause between two lines of a guest. */
const PATIENCE_MS = 30 * 60_000;

/**
 * Boots a kernel with an initramfs, and calls `onMessage` with each message of the guest. Resolves
 * when QEMU ends. Rejects if the guest is silent for too long.
 */
export async function boot(options) {
  const { arch, kernel, initramfs, consoleFile, parameters, memory = 2048, onMessage } = options;
  const console = `console=${CONSOLE[arch]} quiet`;
  const append = `${console} oops=panic panic=-1 mitigations=off nokaslr ${parameters}`;
  const args = [
    ...['-accel', 'tcg,thread=multi', '-smp', '2', '-m', String(memory)],
    ...['-display', 'none', '-monitor', 'none', '-nodefaults', '-no-reboot'],
    ...['-kernel', kernel, '-initrd', initramfs, '-append', append],
    ...MACHINE[arch].map((word) => word.replace('CONSOLE', consoleFile)),
  ];
  const qemu = spawn(QEMU[arch], args, { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise((resolve, reject) => {
    qemu.once('error', reject);
    qemu.once('close', resolve);
  });
  const stop = () => qemu.kill('SIGKILL');
  process.once('exit', stop);
  let last = 'nothing';
  let failure;
  const watchdog = setTimeout(() => {
    failure = new Error(`no output for ${PATIENCE_MS / 60_000} minutes; the last line was ${last}`);
    stop();
  }, PATIENCE_MS);
  for await (const line of createInterface(qemu.stdout)) {
    watchdog.refresh();
    if (!line.startsWith('{')) continue;
    last = line.slice(0, 200);
    onMessage(JSON.parse(line));
  }
  await ended;
  clearTimeout(watchdog);
  process.off('exit', stop);
  if (failure !== undefined) throw failure;
}
