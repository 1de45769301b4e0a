// Lane: patient

import { mkdirSync, rmdirSync } from 'node:fs';

import type { ExitEvent, Gap, Ready, SignalEvent } from '../../src';

import { CGROUP2, itWithCgroup } from '../support/cgroup2';
import { call, exitwatch } from '../support/command';
import { itAsListener, itAsRootOfHost } from '../support/privilege';
import { LineProcess, program } from '../support/programs';
import { until } from '../support/wait';

type Line = Ready | ExitEvent | Gap;

/** The pids that a watch with these filters reports, up to `count` events. */
async function told(filters: string[], count: number, act: () => Promise<unknown>) {
  const watch = exitwatch('watch', '--json', '--count', String(count), ...filters);
  expect(JSON.parse((await watch.line()) ?? 'null')).toMatchObject({ event: 'ready' });
  await act();
  const lines = (await watch.rest()).map((line) => JSON.parse(line) as Line);
  expect(await watch.ended).toBe(0);
  return lines.flatMap((line) => (line.event === 'exit' ? [line.pid] : []));
}

const ended = async (...command: string[]) => {
  const [first = '', ...rest] = command;
  const process = new LineProcess(first, rest);
  await process.ended;
  return process.pid;
};

itAsListener(
  '--parent selects the children of that process, including those that start later',
  async () => {
    const before = new LineProcess('sleep', ['1000']);
    let own: number[] = [];
    const pids = await told(['--parent', String(process.pid)], 3, async () => {
      own = [await ended('sh', '-c', 'sh -c "exit 3"; :'), await ended('true'), before.pid];
      before.child.kill();
    });
    // The shell's own child is not a child of this process. With the cBPF filter, exits with 0 may
    // come later than others.
    expect(pids.toSorted((a, b) => a - b)).toEqual(own.toSorted((a, b) => a - b));
  },
);

itAsRootOfHost('--user selects by name or number, also processes that start later', async () => {
  const as = (uid: string) => ['setpriv', `--reuid=${uid}`, '--clear-groups', 'sh', '-c', 'exit 5'];
  for (const user of ['nobody', '65534']) {
    let nobodys = 0;
    const filters = ['--user', user, '--parent', String(process.pid)];
    const pids = await told(filters, 1, async () => {
      await ended(...as('12345'));
      nobodys = await ended(...as('65534'));
    });
    expect(pids).toEqual([nobodys]);
  }
});

itAsListener('--killed selects processes that a signal ended', async () => {
  let killed = 0;
  const filters = ['--killed', '--parent', String(process.pid)];
  const pids = await told(filters, 1, async () => {
    await ended('sh', '-c', 'exit 3');
    killed = await ended('sh', '-c', 'kill -KILL $$');
  });
  expect(pids).toEqual([killed]);
});

const itInCgroups = CGROUP2 === undefined ? itWithCgroup : itAsRootOfHost;

itInCgroups('--cgroup selects a path, its folder, or a name, and everything below', async () => {
  const name = `exitwatch-${process.pid}.slice`;
  const folders = [`${CGROUP2}/${name}`, `${CGROUP2}/${name}/inner`];
  const others = [`${CGROUP2}/${name}s`, `${CGROUP2}/x${name}`];
  for (const folder of [...folders, ...others]) mkdirSync(folder);
  const into = (folder: string) => ['sh', '-c', `echo $$ > ${folder}/cgroup.procs; exit 4`];
  try {
    for (const wanted of [`/${name}`, folders[0] ?? '', name]) {
      let inside: number[] = [];
      const pids = await told(['--cgroup', wanted], 2, async () => {
        await ended('sh', '-c', 'exit 4');
        for (const other of others) await ended(...into(other));
        inside = [await ended(...into(folders[0] ?? '')), await ended(...into(folders[1] ?? ''))];
      });
      expect(pids).toEqual(inside);
    }
  } finally {
    for (const folder of [...others, ...folders.reverse()]) rmdirSync(folder);
  }
});

// With the eBPF filter the kernel reports the program: see watch.test.ts.
itAsListener(
  '--name with the cBPF filter selects by the program of a process that lived for a second',
  async () => {
    process.env['EXITWATCH_FILTER'] = 'cbpf';
    let later: number | undefined;
    try {
      const filters = ['--name', 'python3*', '--parent', String(process.pid)];
      const pids = await told(filters, 1, async () => {
        const script = new LineProcess('python3', ['-c', RENAMED]);
        expect(await script.line()).toBe('here');
        later = script.pid;
        await new Promise((resolve) => setTimeout(resolve, 2500)); // exitwatch looks once a second
        script.child.kill();
      });
      expect(pids).toEqual([later]);
    } finally {
      delete process.env['EXITWATCH_FILTER'];
    }
  },
);

// The parent reaps its children before exitwatch can look at them: the events have neither an inode
// nor a start time.
itAsListener(
  '--name with the cBPF filter selects by the program of each child that is reaped at once',
  async () => {
    process.env['EXITWATCH_FILTER'] = 'cbpf';
    try {
      const parent = new LineProcess(program('renamed'), ['stay', '20']);
      let children: number[] = [];
      const filters = ['--name', 'renamed', '--parent', String(parent.pid)];
      const pids = await told(filters, 20, async () => {
        parent.child.stdin.write('begin\n');
        children = (await parent.take(20)).map(Number);
        await new Promise((resolve) => setTimeout(resolve, 2500)); // exitwatch looks once a second
        parent.child.stdin.end();
        expect(await parent.ended).toBe(0);
      });
      expect(new Set(pids)).toEqual(new Set(children));
    } finally {
      delete process.env['EXITWATCH_FILTER'];
    }
  },
);

const RENAMED = `
import ctypes, time
ctypes.CDLL(None).prctl(15, b'renamed', 0, 0, 0)
print('here', flush=True)
time.sleep(1000)
`;

itAsRootOfHost('--signals obeys the filters', async () => {
  const watch = exitwatch('watch', '--json', '--signals', '--parent', String(process.pid));
  await watch.line();
  const fates = new LineProcess(program('fates'), ['catches-and-exits']);
  await fates.line();
  fates.child.stdin.write('go\n'); // signals its own child, not one of ours
  await fates.ended;
  const child = new LineProcess('sleep', ['1000']);
  child.child.kill('SIGTERM');
  const signalEvent = async () => {
    const line = JSON.parse((await watch.line()) ?? 'null') as { event: string; pid: number };
    return line.event === 'signal' && line;
  };
  expect((await until('a signal event', signalEvent, watch.told)).pid).toBe(child.pid);
  watch.child.kill('SIGINT');
  await watch.ended;
});

itAsRootOfHost('--signals obeys the filters for processes that are already reaped', async () => {
  const count = 50;
  const brief = `sh -c 'sh -c "exit 1"; kill -KILL $$'`;
  const parent = new LineProcess('sh', [
    '-c',
    `all=$(seq ${count}); read go; for i in $all; do ${brief}; done`,
  ]);
  const filters = ['--parent', String(parent.pid), '--count', String(count)];
  const watch = exitwatch('watch', '--json', '--signals', ...filters);
  await watch.line();
  parent.child.stdin.write('go\n');
  expect(await parent.ended).toBe(128 + 9); // the status of its last child
  const lines = (await watch.rest()).map((line) => JSON.parse(line) as ExitEvent | SignalEvent);
  const pids = (of: string) => lines.flatMap(({ event, pid }) => (event === of ? [pid] : []));
  expect(pids('exit')).toHaveLength(count);
  expect(pids('signal').sort()).toEqual(pids('exit').sort());
  const isFirst = (index: number) =>
    lines.findIndex(({ pid }) => pid === lines[index]?.pid) === index;
  const firsts = lines.filter((_, index) => isFirst(index));
  expect(firsts.filter(({ event }) => event === 'exit')).toEqual([]);
  expect(await watch.ended).toBe(0);
});

test.each([
  [['--user', 'no-such-user-here'], 'unknown user "no-such-user-here"'],
  [['--user', '-x'], '--user requires a value; if the value is -x, write --user=-x'],
  [['--user=-x'], 'unknown user "-x"'],
  [['--parent', 'x'], '--parent must be a positive integer, not "x"'],
  [['--cgroup', ''], '--cgroup requires a value that is not empty'],
])('%j is wrong usage', async (args, message) => {
  const { code, stderr } = await call('watch', ...args);
  expect([code, stderr.split('\n')[0]]).toEqual([2, `exitwatch: ${message}`]);
});
