// Lane: patient

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';

import {
  exists,
  isAlive,
  kill,
  removeStalePidfile,
  stop,
  terminate,
  writePidfile,
} from '../../src/process';
import { runs, type Program } from '../../src/process/executable';

import { call, callWith } from '../support/command';
import { mortal, release } from '../support/mortal';
import { itAsRoot } from '../support/privilege';
import { LineProcess } from '../support/programs';

let folder: string;
let pidfile: string;
const started: LineProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-scripts-'));
  chmodSync(folder, 0o755);
  pidfile = join(folder, 'srv.pid');
});

afterEach(async () => {
  for (const each of started.splice(0)) {
    each.child.kill(); // timeout(1) forwards the signal
    await each.ended;
  }
  rmSync(folder, { recursive: true });
});

/** Starts a program in a folder of its own, and waits until it prints a line. */
async function start(command: string, ...args: string[]): Promise<LineProcess> {
  const process = new LineProcess(command, args, { cwd: folder });
  started.push(process);
  expect(await process.line()).toBe('ready');
  return process;
}

const NODE = 'console.log("ready"); setInterval(() => {}, 1000);\n';
const SHELL = 'echo ready; while :; do sleep 0.05; done\n';
const PYTHON = 'import time\nprint("ready", flush=True)\nwhile True: time.sleep(1)\n';
const PERL = '$| = 1; print "ready\\n"; sleep 1 while 1;\n';

function write(name: string, text: string, mode = 0o644): string {
  const path = join(folder, name);
  writeFileSync(path, text, { mode });
  return path;
}

test('a Node server is identified by its script and stopped, and its pidfile is removed', async () => {
  write('server.js', NODE);
  const server = await start(process.execPath, 'server.js');
  writeFileSync(pidfile, String(server.pid), { mode: 0o644 });
  expect(await call('alive', pidfile, '--executable', 'server.js')).toMatchObject({ code: 0 });
  expect(await call('stop', pidfile, '--executable', 'server.js')).toMatchObject({ code: 0 });
  expect(isAlive(server.pid)).toBe('dead');
  expect(existsSync(pidfile)).toBe(false);
});

test('a living process that runs something else counts as alive, and its pidfile stays', async () => {
  write('other.js', NODE);
  const other = await start(process.execPath, 'other.js', 'server.js');
  const { pid } = other;
  const target = { pid, executable: 'server.js' };
  const says = `process ${pid} runs "${process.execPath}" with "other.js", not "server.js"`;
  const isOther = { code: 'ERR_EXITWATCH_NOT_VERIFIED', detail: says };
  // With and without an identity file.
  for (const hasIdentity of [true, false]) {
    if (hasIdentity) await writePidfile(pidfile, pid);
    else rmSync(`${pidfile}.id`);
    for (const what of [pidfile, String(pid)]) {
      const args = [what, '--executable', 'server.js'];
      const stopped = await call('stop', ...args);
      expect(stopped).toMatchObject({ code: 125, lines: [] });
      expect(stopped.stderr).toContain(says);
      const alive = await call('alive', ...args);
      expect(alive).toMatchObject({ code: 125, lines: ['unknown'] });
      expect(alive.stderr).toContain(says);
    }
  }
  expect(exists(target)).toBe(false);
  for (const act of [stop(target, { pidfile }), terminate(target), kill(target)]) {
    await expect(act).rejects.toMatchObject(isOther);
  }
  expect(await removeStalePidfile(pidfile)).toBe('alive');
  expect(existsSync(pidfile)).toBe(true);
  expect(isAlive(pid)).toBe('alive');
});

test('another process with the pid of a recorded one does not hide that the recorded one is gone', async () => {
  const stranger = await mortal('--stranger');
  const { identity } = await writePidfile(pidfile, stranger.pid);
  if (identity?.inode == null) throw new Error('it ended');
  const inode = identity.inode - 1;
  const before = { ...identity, inode, id: identity.id.replace(/\d+$/, String(inode)) };
  for (const command of ['alive', 'stop'] as const) {
    await writePidfile(pidfile, before);
    const { code } = await call(command, pidfile, '--executable', 'server.js');
    expect(code).toBe(command === 'alive' ? 1 : 0);
  }
  expect(existsSync(pidfile)).toBe(false);
  expect(await release(stranger)).toBe(0);
});

test('a script matches by its absolute path even if the process was started with a relative one', async () => {
  const path = write('server.js', NODE);
  const { pid } = await start(process.execPath, 'server.js');
  mkdirSync(join(folder, 'releases'));
  symlinkSync('..', join(folder, 'releases', 'current'));
  write('releases/server.js', NODE);
  expect(exists({ pid, executable: path })).toBe(true);
  expect(exists({ pid, executable: join(folder, 'releases', 'current', 'server.js') })).toBe(true);
  expect(exists({ pid, executable: join(folder, 'releases', 'server.js') })).toBe(false);
  expect(exists({ pid, executable: '/nowhere/other.js' })).toBe(false);
  // The process may have changed its directory since.
  expect(exists({ pid, executable: '/nowhere/server.js' })).toBe('unknown');
});

itAsRoot('the relative script of another user’s process has an unknown path', async () => {
  const path = write('server.js', NODE);
  const { pid } = await start(process.execPath, 'server.js');
  const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
  expect(await callWith(nobody, 'alive', String(pid), '--executable', path)).toMatchObject({
    code: 125,
  });
  for (const name of ['server.js', 'node']) {
    const found = await callWith(nobody, 'alive', String(pid), '--executable', name);
    expect(found).toMatchObject({ code: 0 });
  }
});

test('interpreters run scripts after options, or through a script’s first line', async () => {
  write('a.js', NODE);
  write('b.sh', SHELL);
  write('c.py', PYTHON);
  write('d.pl', PERL);
  write('preload.cjs', '');
  const direct = [
    write('e.js', `#!/usr/bin/env node\n${NODE}`, 0o755),
    write('f.sh', `#!/bin/sh -u\n${SHELL}`, 0o755),
    write('g.py', `#!/usr/bin/env python3\n${PYTHON}`, 0o755),
    write('h.pl', `#!/usr/bin/perl -w\n${PERL}`, 0o755),
  ];
  const commands: [string, string, ...string[]][] = [
    ['a.js', process.execPath, '--enable-source-maps', '-r', './preload.cjs', 'a.js', 'b.sh'],
    ['a.js', process.execPath, '--max-http-header-size', '9999', './a.js', '--flag', 'b.sh'],
    ['b.sh', 'bash', '-eu', '-o', 'pipefail', 'b.sh', 'a.js'],
    ['b.sh', 'sh', './b.sh'],
    ['c.py', 'python3', '-W', 'ignore', '-uB', 'c.py', 'a.js'],
    ['c', 'python3', '-um', 'c', 'a.js'],
    ['d.pl', 'perl', '-w', '-I', folder, 'd.pl', 'a.js'],
    ...direct.map((path): [string, string] => [path, path]),
  ];
  for (const [name, ...command] of commands) {
    const { pid } = await start(...command);
    expect([command, exists({ pid, executable: name })]).toEqual([command, true]);
    const other = name === 'a.js' ? 'b.sh' : 'a.js';
    expect([command, exists({ pid, executable: other })]).toEqual([command, false]);
  }
});

test('an argument that is plain data does not count as a script', async () => {
  write('server.js', NODE);
  write('keep.js', NODE);
  const { execPath } = process;
  const commands: [string, ...string[]][] = [
    [execPath, 'keep.js', 'server.js'],
    [execPath, '-e', NODE, 'server.js'],
    [execPath, '--require', './server.js', '-e', ''],
    ['sh', '-c', SHELL, 'server.js'],
    ['sh', '-c', `${SHELL} # server.js`],
    ['python3', '-c', PYTHON, 'server.js'],
    ['perl', '-e', PERL, 'server.js'],
    ['sh', '-c', 'echo ready; exec tail -f "$@"', 'sh', 'server.js'],
    ['sh', '-c', 'echo ready; exec timeout 100 node "$@"', 'sh', 'server.js'],
  ];
  for (const [command, ...args] of commands) {
    const { pid } = await start(command, ...args);
    await setTimeout(50);
    expect([args, exists({ pid, executable: 'server.js' })]).toEqual([args, false]);
  }
});

test('a process that has overwritten its arguments may run any script', async () => {
  write('titled.js', `process.title = 'a title'; ${NODE}`);
  const { pid } = await start(process.execPath, 'titled.js');
  expect(exists({ pid, executable: 'node' })).toBe(true);
  expect(exists({ pid, executable: 'titled.js' })).toBe('unknown');
  await expect(stop({ pid, executable: 'titled.js' })).rejects.toMatchObject({
    code: 'ERR_EXITWATCH_NOT_VERIFIED',
  });
});

/** A process as /proc shows it. None of its files exist. */
const program = (
  args: readonly string[],
  path: string | null = `/usr/bin/${args[0] ?? ''}`,
): Program => ({
  pid: 4_194_303,
  kernel: null,
  path,
  args,
});

test.each<[string, boolean | 'unknown', ...string[]]>([
  ['app.jar', true, 'java', '-Xmx1g', '-cp', 'lib.jar', '-jar', '/srv/app.jar', 'other.jar'],
  ['other.jar', false, 'java', '-jar', '/srv/app.jar', 'other.jar'],
  ['/srv/app.jar', true, 'java', '-jar', '/srv/app.jar'],
  ['com.example.Main', true, 'java', '-cp', '/srv/lib.jar', 'com.example.Main'],
  ['lib.jar', false, 'java', '-cp', '/srv/lib.jar', 'com.example.Main'],
  ['app.rb', true, 'ruby', '-I', 'lib', '-w', 'app.rb'],
  ['lib', false, 'ruby', '-I', 'lib', '-w', 'app.rb'],
  ['app.rb', false, 'ruby', '-e', 'sleep', 'app.rb'],
  ['index.php', true, 'php', '-d', 'x=y', '-f', 'index.php'],
  ['http.server', true, 'python3.12', '-m', 'http.server', '8000'],
  ['8000', false, 'python3.12', '-m', 'http.server', '8000'],
  ['server.js', true, 'node', '--title=x', '--', 'server.js'],
  ['server.js', false, 'node', '--title', 'server.js', 'other.js'],
  ['server.js', 'unknown', 'node', 'inspect', 'server.js'],
  ['server.js', 'unknown', 'node', '--of-next-year', 'server.js'],
  ['server.js', 'unknown', 'node', '--of-next-year', 'x', 'server.js'],
  ['server.js', false, 'node', '--of-next-year', 'x.js', 'other.js'],

  ['server.js', 'unknown', 'node', 'server'],
  ['server.js', 'unknown', 'node', '.'],
  ['server', false, 'node', 'server.js'],
  ['server.js', false, 'node', '-'],
  ['server.js', false, 'node'],
  ['run.sh', true, 'bash', '+x', '-O', 'extglob', './run.sh'],
  ['run.sh', true, '-bash', 'run.sh'],
  ['run.sh', false, 'bash', '-lc', 'run.sh'],
  ['run.sh', false, 'bash', '-s', 'run.sh'],
  ['run.sh', true, 'sh', '-', 'run.sh'],
  ['app.pl', false, 'perl', '-wne', 'print', 'app.pl'],
  ['app.pl', true, 'perl', '-Mstrict', '-T', 'app.pl'],
  ['server.js', false, 'vim', 'server.js'],
  ['server.js', false, 'tail', '-f', 'server.js'],
  ['server.js', false, 'npm', 'run', 'server.js'],
])('%j is %p of %p %p %p %p %p', (executable, verdict, ...args) => {
  expect(runs(program(args, args[0] === '-bash' ? '/bin/bash' : undefined), executable)).toBe(
    verdict,
  );
  // Another user's executable cannot be read, but the name with which it was called can.
  expect(runs(program(args, null), executable)).toBe(verdict);
});

test('busybox sh runs scripts, too', () => {
  for (const args of [
    ['sh', 'run.sh'],
    ['busybox', 'sh', 'run.sh'],
  ]) {
    expect(runs(program(args, '/bin/busybox'), 'run.sh')).toBe(true);
  }
  expect(runs(program(['busybox', 'tail', 'run.sh'], '/bin/busybox'), 'run.sh')).toBe(false);
});

test('a path does not match another executable of the same name', () => {
  expect(runs(program(['/opt/a/server'], null), '/opt/a/server')).toBe(true);
  expect(runs(program(['/opt/b/server'], null), '/opt/a/server')).toBe('unknown');
  expect(runs(program(['/opt/b/other'], null), '/opt/a/server')).toBe(false);
  expect(runs(program(['/opt/a/server'], '/opt/b/server'), '/opt/a/server')).toBe(false);
});
