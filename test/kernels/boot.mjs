import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
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
 * Boots a kernel with an initramfs, which is a buffer, and calls `onMessage` with each message of the
 * guest. Resolves when QEMU ends. Rejects if the guest is silent for too long, or has not said that
 * its work is done.
 */
export async function boot({ initramfs, onMessage, ...options }) {
  const folder = mkdtempSync(join(tmpdir(), 'ew-guest-'));
  const initramfsFile = join(folder, 'initramfs');
  const consoleFile = join(folder, 'console');
  const consoleText = () => (existsSync(consoleFile) ? readFileSync(consoleFile, 'latin1') : '');
  let hasEnded = false;
  try {
    writeFileSync(initramfsFile, initramfs);
    await runQemu({
      ...{ ...options, initramfsFile, consoleFile },
      onMessage: (message) => {
        if (message.type === 'end') hasEnded = true;
        onMessage(message);
      },
    });
    if (hasEnded) return;
    if (TRANSLATION_RACE.test(consoleText()))
      throw new EmulatorError('QEMU crashed the guest: it ran a breakpoint already removed');
    throw new Error('the guest exited before its work was done');
  } catch (error) {
    console.error(consoleText().slice(-4000));
    throw error;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

async function runQemu(options) {
  const {
    arch,
    kernel,
    initramfsFile,
    consoleFile,
    parameters,
    memory = 2048,
    onMessage,
  } = options;
  const append = `console=${CONSOLE[arch]} quiet oops=panic panic=-1 mitigations=off nokaslr ${parameters}`;
  const args = [
    ...['-accel', 'tcg,thread=multi', '-smp', '2', '-m', String(memory)],
    ...['-display', 'none', '-monitor', 'none', '-nodefaults', '-no-reboot'],
    ...['-kernel', kernel, '-initrd', initramfsFile, '-append', append],
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
