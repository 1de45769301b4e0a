// Lane: patient

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { machineName } from '../../src/vm';

import { CGROUP2, itWithCgroup } from '../support/cgroup2';
import { exitwatch } from '../support/command';
import { LineProcess } from '../support/programs';

const TOP = `exitwatchvm${process.pid}.slice`;

afterEach(() => {
  const top = join(CGROUP2 ?? '', TOP);
  if (!existsSync(top)) return;
  execFileSync('find', [top, '-depth', '-type', 'd', '-exec', 'rmdir', '{}', '+']);
});

/** Starts a process in this cgroup. */
async function inside(path: string): Promise<LineProcess> {
  const folder = join(CGROUP2 ?? '', TOP, path);
  mkdirSync(folder, { recursive: true });
  const script = 'echo $$ > "$1/cgroup.procs" && echo in && exec sleep 1000';
  const machine = new LineProcess('sh', ['-c', script, 'sh', folder]);
  expect(await machine.line()).toBe('in');
  return machine;
}

itWithCgroup.each([
  [String.raw`machine-qemu\x2d1\x2dweb.scope/libvirt/emulator`, 'web'],
  ['qemu.slice/101.scope', '101'],
  ['web.service', null],
])('a machine at %s is named %s', async (path, name) => {
  const machine = await inside(path);
  expect(machineName(machine.pid)).toBe(name);
  const watch = exitwatch('vm', 'watch', '--pid', String(machine.pid));
  const who = name ?? String(machine.pid);
  expect(await watch.line()).toMatch(new RegExp(` ${who}: running as process ${machine.pid}$`));
  machine.child.kill('SIGKILL');
  expect((await watch.rest()).filter((line) => line.includes(` ${who}: `))).toHaveLength(1);
  await watch.ended;
});

test('a process that is gone has no machine', async () => {
  const { pid, ended } = new LineProcess('true', []);
  await ended;
  expect(machineName(pid)).toBeNull();
});
