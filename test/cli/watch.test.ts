// Lane: patient

import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import type { ExitEvent, Gap, Ready, SignalEvent } from '../../src';

import { call, exitwatch, MAIN, watching } from '../support/command';
import { itAsRootWith } from '../support/controllers';
import { KERNEL } from '../support/kernel';
import { itAsListener, itAsRoot, itAsRootOfHost } from '../support/privilege';
import { LineProcess, program, run } from '../support/programs';
import { until } from '../support/wait';

type Line = Ready | ExitEvent | Gap;

/** The next line that tells no gap: a flood beside the test may make some. */
async function next(command: LineProcess): Promise<Exclude<Line, Gap>> {
  for (;;) {
    const line = JSON.parse((await command.line()) ?? '{}') as Line;
    if (line.event !== 'gap') return line;
  }
}

/** Without root, outside CI, nothing shows who sent a signal. */
const BY_US = `(${process.pid} \\S+|\\?)`;

/** Other processes may run and end on this host during these tests. */
const OF_OURS = ['--parent', String(process.pid)];

describe('exitwatch watch', () => {
  itAsListener(
    '--json prints ready and then each exit on the host as one object per line',
    async () => {
      const watch = exitwatch('watch', '--json');
      expect(await next(watch)).toMatchObject({
        event: 'ready',
        scope: 'all',
        source: 'connector',
      });
      const child = new LineProcess('sh', ['-c', 'exit 7']);
      const itsExit = async () => {
        const line = await next(watch);
        return line.event === 'exit' && line.pid === child.pid && line;
      };
      const line = await until(`the exit of process ${child.pid}`, itsExit, watch.told);
      expect(line).toMatchObject({ how: 'exited', exitCode: 7, parentPid: process.pid });
      expect(new Date(line.exitedAt).toISOString()).toBe(line.exitedAt);
      watch.child.kill('SIGINT');
      expect(await watch.ended).toBe(0);
    },
  );

  itAsListener('prints a table, without colors if stdout is not a terminal', async () => {
    const child = new LineProcess('sh', ['-c', 'echo here; exec sleep 1000']);
    await child.line();
    await until('the exec', () => readFileSync(`/proc/${child.pid}/comm`, 'utf8') === 'sleep\n');
    const watch = exitwatch('watch', '--name', 'sl?ep', '--count', '1', ...OF_OURS);
    expect(await watch.line()).toMatch(/^TIME +PID +PARENT +UID +NAME +LIVED +HOW +BY$/);
    child.child.kill();
    const own = new RegExp(
      `^[\\d:.]{12} +${child.pid} +${process.pid} +\\d+ +sleep +[\\d.]+s +killed SIGTERM +${BY_US}$`,
    );
    expect(await watch.rest()).toEqual([expect.stringMatching(own)]);
    expect(await watch.ended).toBe(0);
    expect(watch.stderr).toContain('watching every process on this host');
  });

  itAsListener('prints colors on a terminal, but not with NO_COLOR', async () => {
    const inTerminal = async (env: NodeJS.ProcessEnv) => {
      const command = `${process.execPath} ${MAIN} watch --count 1 --failed ${OF_OURS.join(' ')}`;
      const terminal = new LineProcess('script', ['-qec', command, '/dev/null'], {
        env: { ...process.env, ...env },
      });
      await terminal.line(); // the line that says what it watches
      await terminal.line(); // the header
      while (terminal.child.exitCode === null) {
        await new LineProcess('sh', ['-c', 'exit 7']).ended;
        const line = await terminal.line();
        if (line !== undefined) return line;
      }
      return '';
    };
    expect(await inTerminal({ NO_COLOR: '' })).toContain('\u001b[');
    expect(await inTerminal({ NO_COLOR: '1' })).not.toContain('\u001b[');
  });

  test('--pid watches processes by pid and ends after the last of them', async () => {
    const children = [new LineProcess('sleep', ['1000']), new LineProcess('sleep', ['1000'])];
    const pids = children.flatMap(({ pid }) => ['--pid', String(pid)]);
    const watch = exitwatch('watch', '--json', ...pids);
    expect(await next(watch)).toMatchObject({ event: 'ready', scope: 'watched' });
    children[0]?.child.kill('SIGKILL');
    expect(await next(watch)).toMatchObject({
      pid: children[0]?.pid,
      signal: 'SIGKILL',
      name: 'sleep',
    });
    children[1]?.child.kill('SIGTERM');
    expect(await next(watch)).toMatchObject({ pid: children[1]?.pid, signal: 'SIGTERM' });
    expect(await watch.ended).toBe(0);
  });

  test('--name matches the kernel’s name, the same name cut to 15 bytes, and the executable’s name', async () => {
    const child = new LineProcess(program('named-longer-than-15'), []);
    const other = new LineProcess('sleep', ['1000']);
    const script = new LineProcess('python3', ['-c', RENAMED]);
    for (const each of [child, script]) expect(await each.line()).toBe('here');
    const names = ['--name', 'named-longer-than-*', '--name', 'python3*', '--name', 'nothing-?'];
    const watch = exitwatch('watch', '--json', '--count', '2', ...names, ...OF_OURS);
    expect(await next(watch)).toMatchObject({ event: 'ready' });
    for (const each of [other, child, script]) {
      each.child.kill();
      await each.ended;
    }
    const told = [await next(watch), await next(watch)];
    expect(told).toMatchObject([
      { pid: child.pid, name: 'named-longer-th' },
      { pid: script.pid, name: 'renamed' },
    ]);
    expect(await watch.ended).toBe(0);
  });

  itAsRootOfHost(
    '--name matches the program of a process that renames itself before it ends',
    async () => {
      if (!KERNEL.tellsPrograms) return;
      const count = 50;
      const folder = mkdtempSync(join(tmpdir(), 'exitwatch-name-'));
      try {
        // Other tests may run the same program beside this one.
        const name = `renamed-${process.pid}`;
        const path = join(folder, name);
        copyFileSync(program('renamed'), path);
        const watch = exitwatch('watch', '--name', name, '--count', String(count + 1));
        await watch.line();
        const pids = await new LineProcess(path, ['run', String(count), path]).rest();
        const lines = (await watch.rest()).filter((line) => line.includes(name));
        expect(lines.map((line) => line.trim().split(/ +/)[1]).slice(0, count)).toEqual(pids);
        for (const line of lines.slice(0, count)) expect(line).toContain(` MainThread (${name})  `);
        expect(lines.at(-1)).toMatch(new RegExp(` ${name} +.* exited 0`));
        expect(await watch.ended).toBe(0);
      } finally {
        rmSync(folder, { recursive: true });
      }
    },
  );

  itAsRootOfHost(
    '--name matches signals by the program that a process ran when it started',
    async () => {
      const script = new LineProcess('python3', ['-c', RENAMED]);
      expect(await script.line()).toBe('here');
      const watch = exitwatch(
        'watch',
        '--signals',
        '--name',
        'python3*',
        '--count',
        '1',
        ...OF_OURS,
      );
      await watch.line();
      script.child.kill('SIGTERM');
      const lines = (await watch.rest()).join('\n');
      expect(lines).toContain(`SIGNAL: SIGTERM to ${script.pid} renamed from `);
      expect(await watch.ended).toBe(0);
    },
  );

  itAsRootOfHost('escapes control characters in a program’s name', async () => {
    if (!KERNEL.tellsPrograms) return;
    const folder = mkdtempSync(join(tmpdir(), 'exitwatch-name-'));
    try {
      const path = join(folder, 'evil\u001b[31m\n');
      copyFileSync(program('renamed'), path);
      const watch = exitwatch('watch', '--name', 'evil*', '--count', '1');
      await watch.line();
      await new LineProcess(program('renamed'), ['run', '1', path]).rest();
      expect(await watch.rest()).toEqual([
        expect.stringContaining('MainThread (evil\\u001b[31m\\u000a)'),
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  itAsRootOfHost(
    '--failed and --signals report a program that exits with 0 after a signal asked it to',
    async () => {
      const watch = exitwatch(
        'watch',
        '--json',
        '--failed',
        '--signals',
        '--name',
        'fates',
        '--name',
        'target',
      );
      await watch.line();
      const fates = new LineProcess(program('fates'), ['catches-and-exits']);
      const [, pid] = ((await fates.line()) ?? '').split(' ').map(Number);
      fates.child.stdin.write('go\n');
      // Other tests may run processes with these names.
      const told: (SignalEvent | ExitEvent)[] = [];
      while (told.length < 2) {
        const event = JSON.parse((await watch.line()) ?? 'null') as SignalEvent | ExitEvent;
        if (event.pid === pid) told.push(event);
      }
      watch.child.kill('SIGINT');
      expect(told).toMatchObject([
        { event: 'signal', pid, sender: { signal: 'SIGTERM', name: 'sender' } },
        {
          event: 'exit',
          pid,
          exitCode: 0,
          signalsReceived: [{ signal: 'SIGTERM', name: 'sender' }],
        },
      ]);
      expect(await watch.ended).toBe(0);
    },
  );

  const lineOf = async (fate: string) => {
    const fates = new LineProcess(program('fates'), [fate]);
    const [, pid] = ((await fates.line()) ?? '').split(' ');
    const watch = exitwatch('watch', '--pid', pid ?? '');
    await watch.line();
    fates.child.stdin.write('go\n');
    const [line = ''] = await watch.rest();
    return line.slice(line.indexOf('target')).replace(/ +/g, ' ');
  };

  itAsRootOfHost('the column BY names who killed a process or asked it to end', async () => {
    expect(await lineOf('catches-and-exits')).toMatch(
      /exited 0 after SIGTERM from \d+ sender \(fates\)$/,
    );
    expect(await lineOf('tgkill')).toMatch(/killed SIGTERM \d+ sender \(fates\) \(tgkill\)$/);
    expect(await lineOf('fault')).toMatch(/killed SIGSEGV itself \(fault\)$/);
    expect(await lineOf('abort')).toMatch(/killed SIGABRT itself \(tgkill\)$/);
    expect(await lineOf('raises-again')).toMatch(
      /killed SIGTERM itself, after SIGTERM from \d+ sender \(fates\)$/,
    );
    // Nobody knows what it was sent before.
    expect(await lineOf('exit')).toMatch(/exited 0 \?$/);
    const watch = exitwatch('watch', '--parent', String(process.pid));
    await watch.line();
    await watching(watch);
    const later = new LineProcess('sh', ['-c', 'exit 3']);
    expect(await later.ended).toBe(3);
    for await (const line of watch.lines) {
      if (!line.split(/ +/).includes(String(later.pid))) continue;
      expect(line).toMatch(/exited 3 +-$/);
      break;
    }
    watch.child.kill('SIGTERM');
    await watch.ended;
  });

  itAsRootWith('memory')('the column BY says that memory ran out', async () => {
    expect(await lineOf('out-of-memory')).toMatch(/killed SIGKILL kernel \(out of memory\)$/);
  });

  itAsRoot(
    'a Node.js server that raises the signal that killed it is reported with the signal’s first sender',
    async () => {
      const server = new LineProcess(process.execPath, [
        '-e',
        "require('http').createServer().listen(0, () => console.log('listening'))",
      ]);
      await server.line();
      const watch = exitwatch('watch', '--pid', String(server.pid));
      await watch.line();
      const killer = new LineProcess('sh', ['-c', `kill ${server.pid}; :`]);
      const [line = ''] = await watch.rest();
      expect(line).toMatch(
        new RegExp(`killed SIGTERM +itself, after SIGTERM from ${killer.pid} sh$`),
      );
    },
  );

  itAsListener('--failed leaves out exits with 0; --count ends the watch', async () => {
    const watch = exitwatch('watch', '--json', '--failed', '--count', '2', ...OF_OURS);
    expect(await next(watch)).toMatchObject({ event: 'ready' });
    const told: ExitEvent[] = [];
    const collect = (async () => {
      for (const line of await watch.rest()) {
        const event = JSON.parse(line) as ExitEvent | Gap;
        if (event.event === 'exit') told.push(event);
      }
    })();
    while (watch.child.exitCode === null) {
      // The inner process exits with 0.
      await run('sh', ['-c', '/bin/true; kill -KILL $$']).catch(() => undefined);
    }
    await collect;
    expect(told).toHaveLength(2);
    for (const event of told) expect(event.how === 'exited' && event.exitCode === 0).toBe(false);
    expect(await watch.ended).toBe(0);
  });

  test('--for ends the watch', async () => {
    expect(await call('watch', '--for', '200ms', '--pid', String(process.pid))).toMatchObject({
      code: 0,
      lines: [expect.stringContaining('TIME')],
    });
  });

  test('ends silently when its reader goes away', async () => {
    // Of others it may have to say that it did not see who ended them.
    const watch = exitwatch('watch', '--name', 'true');
    await watch.line();
    watch.child.stdout.destroy();
    const endsAfterAnExit = async () => {
      await new LineProcess('true', []).ended;
      return watch.child.exitCode !== null || watch.child.signalCode !== null;
    };
    await until('the command to end', endsAfterAnExit, watch.told);
    expect(watch.child.exitCode).toBe(0);
    expect(watch.stderr).toBe(`${watch.stderr.split('\n')[0] ?? ''}\n`);
  });

  test('exits with 125 if its output cannot be written', async () => {
    const command = `${process.execPath} ${MAIN} watch --json --for 1s > /dev/full`;
    const watch = new LineProcess('sh', ['-c', command]);
    expect(await watch.ended).toBe(125);
    expect(watch.stderr).toContain('ENOSPC');
  });

  test('escapes a name crafted to harm a terminal', async () => {
    const child = new LineProcess('python3', ['-c', HARMFUL]);
    expect(await child.line()).toBe('here');
    const watch = exitwatch('watch', '--pid', String(child.pid));
    const json = exitwatch('watch', '--json', '--pid', String(child.pid));
    await watch.line();
    await json.line();
    child.child.kill();
    const line = (await watch.line()) ?? '';
    expect(line).toContain('a\\u001b[2Jb\\u202ec\\\\d');
    const raw = (await json.line()) ?? '';
    expect(raw).not.toContain('\u202e'); // JSON itself escapes the other character
    expect((JSON.parse(raw) as ExitEvent).name).toBe('a\u001b[2Jb\u202ec\\d');
  });

  test.each([
    [['watch', '--pid', '0'], 2],
    [['watch', '--pid', '-1'], 2],
    [['watch', '--pid', 'x'], 2],
    [['watch', '--pid', '99999999'], 2],
    [['watch', '--pid', '2'], 127],
    [['watch', '--count', '0'], 2],
    [['watch', '--for', 'soon'], 2],
    [['watch', '--source', 'guess'], 2],
    [['watch', '--name', '[z-a]'], 2],
    [['watch', '--colour'], 2],
    [['watch', 'something'], 2],
    [['whatch'], 2],
    [[], 2],
  ])('%j exits with %i', async (args, code) => {
    const result = await call(...args);
    expect(result.code).toBe(code);
    expect(result.stderr.length + result.lines.length).toBeGreaterThan(0);
  });

  test('a pid that does not exist exits with 127', async () => {
    const gone = new LineProcess('true', []);
    await gone.ended;
    const { code, stderr } = await call('watch', '--pid', String(gone.pid));
    expect(code).toBe(127);
    expect(stderr).toBe(`exitwatch: no process has pid ${gone.pid}\n`);
  });
});

test('--help and --version print their text', async () => {
  expect((await call('--help')).lines.join('\n')).toContain('watch');
  for (const command of ['watch', 'wait', 'doctor']) {
    expect((await call(command, '--help')).lines.join('\n')).toContain(`exitwatch ${command}`);
  }
  expect((await call('--version')).lines).toEqual([expect.stringMatching(/^\d+\.\d+\.\d+$/)]);
});

const rename = (name: string) => `
import ctypes, time
ctypes.CDLL(None).prctl(15, ${JSON.stringify(name)}.encode(), 0, 0, 0)
print('here', flush=True)
time.sleep(1000)
`;
const RENAMED = rename('renamed');
const HARMFUL = rename('a\u001b[2Jb\u202ec\\d');
