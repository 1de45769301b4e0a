import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const PATIENCE_MS = 20_000;

/** Processes by a word in their command line. */
export function processesOf(mark) {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) return [];
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'latin1');
      if (!words.includes(mark)) return [];
      const { ticks, state } = statOf(name);
      return state === 'Z' ? [] : [{ pid: Number(name), ticks }];
    } catch {
      return [];
    }
  });
}

function statOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return { state: fields[0], ticks: Number(fields[19]) };
}

/** Whether that process, and not one that has its pid, is there. */
export function alive({ pid, ticks }) {
  try {
    const now = statOf(pid);
    return now.state !== 'Z' && (ticks === undefined || now.ticks === ticks);
  } catch {
    return false;
  }
}

/** The first answer that is not empty. */
export async function until(look) {
  const end = performance.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found !== false && found !== null && found?.length !== 0) return found;
    if (performance.now() > end) throw new Error(`timed out: ${look}`);
    await sleep(20);
  }
}
