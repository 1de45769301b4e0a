// Lane: patient

import {
  createReadStream,
  existsSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
} from 'node:fs';
import { basename, dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

import type { RunOptions } from '../../src/supervisor/index.js';
import { KeeperHost } from '../support/keeper';
import { program } from '../support/programs';
import { ROUNDS } from '../support/rounds';
import { until } from '../support/wait';
import { kill } from '../support/kill';

/** Each has 64 bytes: 51 MB in each round, and 1 GB in 20. */
const LINES = 800_000 * ROUNDS;
const MOST_BYTES = 8 << 20;
const LEAST_BYTES = 2 << 20;
const KEEP = 900;
const PATIENCE_MS = 60_000 * (1 + ROUNDS);

/** Reads a log with its rotated files, and checks that its numbers are 0, 1, 2 …; returns how many. */
async function countLines(log: string): Promise<number> {
  // Whoever was killed amid the last rotation has left a number free.
  const numbers = readdirSync(dirname(log))
    .filter((name) => name.startsWith(`${basename(log)}.`) && /\.\d+$/.test(name))
    .map((name) => Number(name.slice(name.lastIndexOf('.') + 1)))
    .sort((one, other) => other - one);
  let next = 0;
  let rest = '';
  for (const i of [...numbers, 0]) {
    const file = createReadStream(i === 0 ? log : `${log}.${i}`, 'latin1');
    for await (const part of file as AsyncIterable<string>) {
      const lines = (rest + part).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line.length !== 63 || Number(line) !== next)
          throw new Error(`line ${next} is "${line}"`);
        next++;
      }
    }
  }
  expect(rest).toBe('');
  return next;
}

/** The log process that writes this file. */
function logProcess(log: string): number | undefined {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .find((pid) => {
      try {
        if (readFileSync(`/proc/${pid}/comm`, 'latin1') !== 'exitwatch-log\n') return false;
        const files = readdirSync(`/proc/${pid}/fd`);
        return files.some((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) === log);
      } catch {
        return false;
      }
    });
}

const counting = (logs: RunOptions['logs'] & object): RunOptions => ({
  ...{ id: 'counts', command: program('counting'), args: [String(LINES)], logs },
});

it(
  `${(LINES * 64) / 1e6} MB through a log process, while it, the keeper and the client die: no byte lost, none twice`,
  async () => {
    await using host = await KeeperHost.open();
    let kills = 0;
    // It may have written all of it before we have a processor: then that shows nothing.
    for (let runs = 1; kills <= 2; runs++) {
      const [id, log] = [`counts${runs}`, host.path(`log${runs}`)];
      await host.keeper.start({
        ...counting({ file: log, maxBytes: MOST_BYTES, keep: KEEP }),
        id,
      });
      kills = 0;
      while (host.keeper.run(id)?.state === 'running') {
        const pid = logProcess(log);
        if (pid !== undefined) kill(pid, 'SIGKILL');
        kills++;
        if (kills % 4 === 0) await host.reopen();
        if (kills % 10 === 0) {
          const { restarts } = host;
          kill(host.keeperPid, 'SIGKILL');
          await until('another keeper', () => host.restarts > restarts);
        }
        await sleep(50);
      }
      // Its parent was killed, too: its status may be unknown, but is not wrong.
      expect([0, null]).toContain((await host.end(id)).exitCode);
      await until('the log process to end', () => logProcess(log) === undefined);
      expect(await countLines(log)).toBe(LINES);
      expect(existsSync(`${log}.3`)).toBe(true);
    }
  },
  PATIENCE_MS,
);

it(
  `${(LINES * 64) / 1e6} MB into a file that is rotated: no byte lost, none twice`,
  async () => {
    await using host = await KeeperHost.open();
    let rotations = 0;
    // It may have written all of it before we have a processor: then that shows nothing.
    for (let runs = 1; rotations <= 2; runs++) {
      const [id, log] = [`counts${runs}`, host.path(`log${runs}`)];
      await host.keeper.start({ ...counting({ stdout: log }), id });
      const isRunning = () => host.keeper.run(id)?.state === 'running';
      rotations = 0;
      while (isRunning()) {
        await host.keeper.rotateLog(id, log, KEEP);
        rotations++;
        // However slow the disk is, there are fewer than we keep.
        while (isRunning() && statSync(log).size < LEAST_BYTES) await sleep(1);
        if (rotations % 5 === 0) await host.reopen();
      }
      expect(await host.end(id)).toMatchObject({ how: 'exited', exitCode: 0 });
      expect(await countLines(log)).toBe(LINES);
    }
  },
  PATIENCE_MS,
);

it(
  'the log of a run that ends while it is rotated: it is rotated, and no byte lost',
  async () => {
    await using host = await KeeperHost.open();
    const lines = 2000;
    for (let i = 0; i < 200 * ROUNDS; i++) {
      const [id, log] = [`run${i}`, host.path(`log${i}`)];
      await host.keeper.start({
        ...{ ...counting({ stdout: log }), id, args: [`${lines}`] },
        ...(i % 4 === 3 ? { cgroup: null } : {}),
      });
      while (host.keeper.run(id)?.state === 'running') await host.keeper.rotateLog(id, log, KEEP);
      await host.end(id);
      expect(await countLines(log)).toBe(lines);
    }
  },
  PATIENCE_MS,
);
