// Lane: patient

import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { readIntents } from '../../src/process';

import { MemoryFolder } from '../support/bpffs';
import { commandWith } from '../support/pages';
import { itAsRecorder, itAsRoot } from '../support/privilege';
import { LineProcess, REPOSITORY } from '../support/programs';
import { armed, ShellExamples, until } from '../support/shell-examples';

let examples: ShellExamples;

beforeEach(() => {
  examples = new ShellExamples();
});

afterEach(async () => {
  await examples.remove();
});

/** A command of a page, with the test's folders in place of the host's. */
const command = (page: string, part: string) =>
  commandWith(`docs/${page}.md`, part).replace(
    /(\/run|\/var\/log|\/var\/lib\/me|\/var\/lib(?=\/my-))(?=\/)/g,
    examples.folder,
  );

/** Has a shell send SIGTERM to the process. */
async function killed({ pid }: LineProcess): Promise<LineProcess> {
  const killer = new LineProcess('sh', ['-c', `kill ${pid}; exit 0`]);
  await killer.ended;
  return killer;
}

const sleeper = (name = 'sleep') =>
  examples.start(name === 'sleep' ? name : examples.named(name), ['100']);

describe('docs/wait-for-one.md', () => {
  test('wait exits as the process did: with its exit code, or with 128 plus the signal', async () => {
    const line = command('wait-for-one', '4711');
    for (const [script, code, how] of [
      ['read line; exit 3', '3', 'exited 3'],
      ['read line; kill $$', '143', 'killed SIGTERM'],
    ] as const) {
      const process = examples.start('sh', ['-c', script]);
      const wait = examples.run(line.replace('4711', String(process.pid)));
      await armed(wait);
      process.child.stdin.end('\n');
      const lines = await wait.rest();
      expect(lines[0]).toMatch(new RegExp(`^${process.pid} \\(sh\\) ${how}, after`));
      expect(lines.at(-1)).toBe(code);
    }
  });

  test('wait waits for the only process with that name', async () => {
    // Another QEMU may run on this host.
    const line = command('wait-for-one', 'qemu-system-*').replace('qemu-system-*', 'the-one-*');
    const { pid, child } = sleeper('the-one-of-two');
    const wait = examples.run(line);
    await armed(wait);
    child.kill();
    expect(await wait.line()).toMatch(new RegExp(`^${pid} \\(the-one-.*\\) killed SIGTERM`));
  });
});

describe('docs/watch-everything.md', () => {
  const page = 'watch-everything';

  itAsRoot('watch prints a table until Ctrl-C', async () => {
    const watch = examples.run(`exec ${command(page, 'until Ctrl-C')}`);
    await until(watch, /^TIME/);
    const sleep = sleeper();
    await killed(sleep);
    await until(watch, new RegExp(` ${sleep.pid} .* sleep .* killed SIGTERM +\\d+ sh$`));
    watch.child.kill('SIGINT');
    expect(await watch.ended).toBe(0);
  });

  itAsRoot('--failed leaves out exits with 0', async () => {
    const watch = examples.run(`exec ${command(page, '--failed')}`);
    await until(watch, /^TIME/);
    const good = examples.start('sh', ['-c', 'exit 0']);
    await good.ended;
    const bad = examples.start('sh', ['-c', 'exit 5']);
    const lines = await until(watch, new RegExp(` ${bad.pid} .* exited 5 `));
    expect(lines.filter((line) => line.includes(` ${good.pid} `))).toEqual([]);
  });

  itAsRoot('the ends of processes with one name are appended to a file as JSON', async () => {
    const line = command(page, '--json').replace('qemu-*', 'pemu-*');
    const watch = examples.run(`exec ${line}`);
    await armed(watch);
    const { pid, child } = sleeper('pemu-system-mips');
    child.kill();
    const file = examples.at('exits.jsonl');
    const events = () =>
      readFileSync(file, 'utf8')
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as object);
    while (events().length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(events()).toMatchObject([
      { event: 'ready' },
      { event: 'exit', pid, program: 'pemu-system-mips', signal: 'SIGTERM' },
    ]);
  });

  const mount = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].find((path) =>
    existsSync(`${path}/cgroup.controllers`),
  );

  itAsRoot('--killed --cgroup prints what a signal ends in a unit', async () => {
    const watch = examples.run(`exec ${command(page, '--cgroup')}`);
    const slice = `${mount}/exitwatch-printed-${process.pid}`;
    const service = `${slice}/nginx.service`;
    mkdirSync(service, { recursive: true });
    await until(watch, /^TIME/);
    const inUnit = (script: string) =>
      examples.start('sh', ['-c', `echo $$ >${service}/cgroup.procs; ${script}`]);
    await killed(sleeper());
    await inUnit('exit 4').ended;
    const one = inUnit('echo in; exec sleep 100');
    await one.line();
    await killed(one);
    const lines = await until(watch, new RegExp(` ${one.pid} .* killed SIGTERM `));
    expect(lines).toHaveLength(1);
    await one.ended;
    rmdirSync(service);
    rmdirSync(slice);
  });

  itAsRoot('--exec passes the end to a command as a sentence', async () => {
    // Stands in for the program that writes to the host's log.
    writeFileSync(examples.at('bin/logger'), '#!/bin/sh\necho "logged: $1"\n', { mode: 0o755 });
    const watch = examples.run(`exec ${command(page, '--exec')}`);
    await until(watch, /^TIME/);
    const sleep = sleeper();
    await killed(sleep);
    const logged = new RegExp(`^logged: ${sleep.pid} \\(sleep\\) killed SIGTERM`);
    expect((await until(watch, logged)).at(-1)).toMatch(logged);
  });
});

describe('docs/who-did-it.md', () => {
  itAsRoot('wait prints the whole story to stderr', async () => {
    const sleep = sleeper();
    const line = command('who-did-it', '4711').replace('4711', String(sleep.pid));
    const wait = examples.start('sh', ['-c', `exec ${line}`]);
    await armed(wait);
    const { pid } = await killed(sleep);
    expect(await wait.rest()).toHaveLength(1);
    expect(wait.stderr).toMatch(new RegExp(`^by +SIGTERM from ${pid} sh, `, 'm'));
  });

  itAsRoot('watch --failed names in the column BY who asked the process to end', async () => {
    const watch = examples.run(`exec ${command('who-did-it', '--failed')}`);
    await until(watch, /^TIME.* BY$/);
    const polite = examples.start('sh', [
      '-c',
      'trap "exit 0" TERM; echo in; while :; do sleep 0.05; done',
    ]);
    await polite.line();
    const { pid } = await killed(polite);
    await until(watch, new RegExp(` ${polite.pid} .* exited 0 +after SIGTERM from ${pid} sh$`));
  });

  itAsRoot('watch --signals prints each signal when it is sent', async () => {
    const watch = examples.run(`exec ${command('who-did-it', '--signals')}`);
    await until(watch, /^TIME/);
    const polite = examples.start('sh', [
      '-c',
      'trap "" TERM; trap "echo got" INT; echo in; while :; do sleep 0.05; done',
    ]);
    await polite.line();
    const killer = new LineProcess('sh', ['-c', `kill -INT ${polite.pid}; exit 0`]);
    const { pid } = killer;
    await until(
      watch,
      new RegExp(`^[\\d:.]+ +SIGNAL: SIGINT to ${polite.pid} sh from ${pid} sh, uid 0$`),
    );
  });
});

describe('docs/stop-safely.md', () => {
  const page = 'stop-safely';
  const pidfile = () => examples.at('server.pid');

  const server = () => {
    const process = sleeper('server');
    writeFileSync(pidfile(), String(process.pid), { mode: 0o644 });
    return process;
  };

  test('stop records its intent and returns when the process is gone', async () => {
    const { pid } = server();
    const stop = examples.run(command(page, '--intent-log'));
    expect(await stop.rest()).toEqual([
      expect.stringMatching(
        new RegExp(`^${pid} \\(server\\) killed SIGTERM, after [\\d.]+s, by the signal$`),
      ),
    ]);
    expect(await stop.ended).toBe(0);
    expect(existsSync(pidfile())).toBe(false);
    expect(await readIntents(examples.at('intents.jsonl'))).toMatchObject([
      { what: 'SIGTERM', why: 'upgrade', outcome: 'delivered', identity: { pid } },
    ]);
  });

  test('alive exits with 0, 1 or 125', async () => {
    const line = command(page, 'alive');
    const { child, ended } = server();
    expect(await examples.run(line).rest()).toEqual(['alive', '0']);
    child.kill();
    await ended;
    expect(await examples.run(line).rest()).toEqual(['dead', '1']);
    writeFileSync(pidfile(), '4 2', { mode: 0o644 });
    expect((await examples.run(line).rest()).at(-1)).toBe('125');
  });

  test('stop --tree stops a process and all its descendants', async () => {
    const shell = examples.start(examples.named('server', '/bin/sh'), [
      '-c',
      'sleep 100 & echo in; wait',
    ]);
    await shell.line();
    writeFileSync(pidfile(), String(shell.pid), { mode: 0o644 });
    const stop = examples.run(command(page, '--tree'));
    expect(await stop.rest()).toEqual([
      expect.stringMatching(
        /\(server\) killed SIGTERM, after [\d.]+s, by the signal; and 1 other in its tree$/,
      ),
    ]);
    expect(await shell.ended).toBeNull();
  });
});

describe('docs/memory.md', () => {
  itAsRecorder('a recorder for another user is created, listed and removed', async () => {
    using memory = new MemoryFolder();
    const there = `--pin-dir ${memory.pinDir}`;
    const linesOf = (line: string) => examples.run(`${line} ${there}`).rest();
    const [created] = await linesOf(command('memory', '--create'));
    expect(created).toMatch(/^created /);
    expect(await linesOf(command('memory', 'lists all'))).toEqual(
      expect.arrayContaining([
        expect.stringMatching(new RegExp(`^${examples.at('my-supervisor')} \\(user \\d+, `)),
      ]),
    );
    expect(await linesOf(command('memory', '--remove'))).toEqual([
      expect.stringMatching(/^removed /),
    ]);
  });
});

describe('docs/privilege.md', () => {
  itAsRoot('an ordinary user with these capabilities gets every feature', async () => {
    const page = readFileSync(join(REPOSITORY, 'docs', 'privilege.md'), 'utf8');
    const [, before = ''] = /`sudo (setpriv .*) node …`/.exec(page) ?? [];
    const line = `${before.replace('$USER', 'nobody')} exitwatch doctor`;
    expect(await examples.run(line).rest()).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^connector +works, eBPF filter; /),
        expect.stringMatching(/^signals +works: /),
      ]),
    );
  });
});
