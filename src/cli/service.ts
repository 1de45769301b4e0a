import { addonRefusal, loadAddon } from '../native/load-addon.js';

/**
 * Reports our state to systemd (sd_notify(3)) if systemd started us: `READY=1`, `STATUS=…`,
 * `STOPPING=1`. Notification failures are logged, never retried.
 */
export function notifyService(state: string): void {
  const path = process.env['NOTIFY_SOCKET'];
  if (path === undefined || path === '' || addonRefusal() !== null) return;
  try {
    loadAddon().sendDatagram(path, state);
  } catch (error) {
    const { syscall } = error as NodeJS.ErrnoException;
    process.stderr.write(`exitwatch: cannot notify systemd: ${syscall ?? String(error)}\n`);
  }
}

/**
 * Sends keep-alives twice per systemd watchdog interval (`WatchdogSec=`). Call the returned
 * function to stop them.
 */
export function keepServiceAlive(): () => void {
  const { WATCHDOG_USEC: interval, WATCHDOG_PID: pid } = process.env;
  const isMeant = pid === undefined || Number(pid) === process.pid;
  const everyMs = Number(interval) / 1000 / 2;
  if (!isMeant || !(everyMs >= 1)) return () => undefined;
  const timer = setInterval(() => {
    notifyService('WATCHDOG=1');
  }, everyMs);
  return () => {
    clearInterval(timer);
  };
}
