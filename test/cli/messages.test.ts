// Lane: patient

import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { call, callWith, MAIN } from '../support/command';
import { mortal, release } from '../support/mortal';
import { itAsRoot } from '../support/privilege';
import { LineProcess, REPOSITORY } from '../support/programs';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-messages-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

/** Text that only a stack trace or one of Node's own errors contains. */
const STACK = /\n\s+at |node:internal|Error:|\\u000a|E[A-Z]+: /;

const TAIL = 'Run "exitwatch --help" or "exitwatch COMMAND --help" for usage.\n';

const usage = (message: string) => `exitwatch: ${message}\n${TAIL}`;

describe('wrong usage exits with 2 and names the command’s own words', () => {
  test.each<[string[], string]>([
    [['watch', 'node'], 'unexpected argument "node"; did you mean: exitwatch watch --name node'],
    [['watch', '42'], 'unexpected argument "42"; did you mean: exitwatch watch --pid 42'],
    [['watch', '--pid', '-1'], '--pid requires a value; if the value is -1, write --pid=-1'],
    [['watch', '--pid'], '--pid requires a value'],
    [['watch', '--name', ''], '--name requires a value that is not empty'],
    [['watch', '--colour'], 'unknown option --colour'],
    [['watch', '--failed=yes'], '--failed does not take a value'],
    [
      ['watch', '--source', 'pidfd'],
      '--source pidfd requires --pid: a pidfd reports a single process',
    ],
    [
      ['watch', '--source', 'guess'],
      '--source must be auto, connector, pidfd or poll, not "guess"',
    ],
    [
      ['watch', '--source', 'poll', '--signals'],
      '--source poll does not report signals; use --signals with another source',
    ],
    [['wait', '1', '--source', 'x'], '--source must be auto, connector, pidfd or poll, not "x"'],
    [['wait', '-1'], 'unknown option -1'],
    [
      ['stop', 'sleep'],
      '"sleep" is neither a pid nor an existing pidfile; pgrep finds pids by name',
    ],
    [
      ['alive', 'sleep'],
      '"sleep" is neither a pid nor an existing pidfile; pgrep finds pids by name',
    ],
    [['stop', '1', '--executable', ''], '--executable requires a value that is not empty'],
    [['alive', '1', '--executable='], '--executable requires a value that is not empty'],
    [['stop', '1', '--intent-log', ''], '--intent-log requires a value that is not empty'],
    [['vm', 'watch', '--pid', 'x'], '--pid must be a positive integer, not "x"'],
    [['vm', 'watch', '--control-dir', ''], '--control-dir requires a value that is not empty'],
    [
      ['vm', 'status', '../x', '--state-dir', '/'],
      '"../x" is not a valid name of a virtual machine',
    ],
    [['why'], 'why requires exactly one NAME, PID, UNIT or CONTAINER'],
    [
      ['why', 'x', '--since', '-1x'],
      '--since must be a time such as -1h, yesterday or "2026-11-24 03:00", not "-1x"',
    ],
    [['history', 'nginx'], 'unexpected argument "nginx": this command accepts only options'],
    [['history', '--user', 'no such user'], 'unknown user "no such user"'],
    [
      ['record', '--match', 'some'],
      '--match must be all, failed, killed, name=GLOB, user=USER or unit=UNIT, not "some"',
    ],
    [['record', '--group', 'no such group'], 'unknown group "no such group"'],
    [
      ['record', '--install', '--uninstall'],
      'record accepts only one of --install, --uninstall and --print-unit',
    ],
    [['record', '--rate', '0'], '--rate must be a positive integer, not "0"'],
    [['vm', 'fly'], 'unknown command "vm fly"'],
    [['doctor', 'x'], 'unexpected argument "x": this command accepts only options'],
  ])('%j', async (args, message) => {
    expect(await call(...args)).toEqual({ code: 2, lines: [], stderr: usage(message) });
  });

  test.each([['watch', '--name'], ['wait']])(
    'a pattern of 100,001 characters, to %j',
    async (...args) => {
      const { code, stderr } = await call(...args, 'a'.repeat(100_001));
      expect({ code, stderr }).toEqual({
        code: 2,
        stderr: usage('a name pattern can have at most 1024 characters'),
      });
    },
  );

  test.each([
    ['watch', '--for', '1s'],
    ['doctor'],
    ['wait', String(process.pid), '--timeout', '1s'],
  ])('a misspelled variable, given to %s', async (...args) => {
    const { code, lines, stderr } = await callWith(['env', 'EXITWATCH_FILTER=clasic'], ...args);
    const message = 'EXITWATCH_FILTER must be "cbpf", or unset, not "clasic"';
    expect({ code, lines, stderr }).toEqual({ code: 2, lines: [], stderr: usage(message) });
  });
});

test.each([['vm'], ['intent']])('%s alone lists its commands and exits with 2', async (group) => {
  const { code, lines } = await call(group);
  expect(code).toBe(2);
  const commands = lines.filter((line) => line.startsWith('  ') && !line.startsWith('  --'));
  expect(commands.length).toBeGreaterThan(1);
  for (const line of commands) expect(line).toMatch(new RegExp(`^  ${group} `));
  expect(await call(group, '--help')).toMatchObject({ code: 0, lines });
});

test('help followed by a command prints that command’s help', async () => {
  expect(await call('help', 'vm', 'stop')).toEqual(await call('vm', 'stop', '--help'));
});

describe('a failure is reported in one sentence, without a stack trace', () => {
  const says = async (args: string[], code: number, message: string) => {
    const told = await call(...args);
    expect(told).toMatchObject({ code, stderr: `exitwatch: ${message}\n` });
    expect(told.stderr).not.toMatch(STACK);
  };

  test('a folder that does not exist', async () => {
    const nope = join(folder, 'nope');
    const missing = `cannot use ${JSON.stringify(nope)}: no such file or directory`;
    await says(['vm', 'status', '--state-dir', nope], 125, missing);
    await says(
      ['vm', 'status', 'x', '--state-dir', nope],
      125,
      `${nope}: no such file or directory`,
    );
    await says(['stop', join(nope, 'x')], 127, `pidfile "${join(nope, 'x')}" does not exist`);
    await says(
      ['vm', 'stop', '--pid', '1', '--intent-log', join(nope, 'log')],
      125,
      'process 1 is init',
    );
    const { code, lines } = await call('vm', 'watch', '--pidfile', nope);
    expect([code, lines[0]]).toEqual([
      127,
      expect.stringContaining(`pidfile "${nope}" does not exist`),
    ]);
  });

  test('a state directory that cannot be created', async () => {
    const to = (path: string) => ['vm', 'daemon', '--control-dir', folder, '--state-dir', path];
    await says(to('/proc/nope'), 125, 'cannot use "/proc/nope": no such file or directory');
    const file = join(folder, 'file');
    writeFileSync(file, '');
    await says(to(join(file, 'x')), 125, `cannot use "${join(file, 'x')}": not a directory`);
  });

  test('an intent log that cannot be written', async () => {
    const target = await mortal();
    const log = join(folder, 'nope', 'log');
    const message = `cannot use the intent log "${log}": no such file or directory`;
    await says(['stop', String(target.pid), '--intent-log', log], 125, message);
    expect(await release(target)).toBe(0);
  });

  test('init, and an ancestor with its tree: the message names the option to use', async () => {
    await says(['stop', '1'], 125, 'process 1 is init; use --force if you mean it');
    const tree = ['stop', String(process.pid), '--tree'];
    const { code, stderr } = await call(...tree);
    expect([code, stderr]).toEqual([
      125,
      expect.stringMatching(/from outside its tree, or without --tree\n$/),
    ]);
  });

  test('a vm watch of one process that --for ends is not a failure', async () => {
    expect(await call('vm', 'watch', '--pid', String(process.pid), '--for', '100ms')).toMatchObject(
      {
        code: 0,
        lines: [expect.stringContaining('running as process')],
      },
    );
  });

  test.each(['>&-', '2>&-', '>&- 2>&-', '2>/dev/full'])(
    'a stream that has been closed: %s',
    async (how) => {
      for (const [command, code] of [
        ['watch --for 100ms', 0],
        ['watch --bogus', 2],
      ] as const) {
        const shell = new LineProcess('sh', [
          '-c',
          `${process.execPath} ${MAIN} ${command} ${how}`,
        ]);
        expect(await shell.ended).toBe(code);
        expect(shell.stderr).not.toMatch(STACK);
      }
    },
  );

  test('a reader of stderr that has gone away', async () => {
    const command = `${process.execPath} ${MAIN} watch --bogus; echo $? >&3`;
    const shell = new LineProcess('bash', ['-c', `exec 3>&1; (${command}) 2>&1 >/dev/null | true`]);
    expect(await shell.rest()).toEqual(['2']);
  });
});

/** A PATH that has only these programs. */
function machineWith(...programs: string[]): string {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  for (const program of programs) symlinkSync(`/usr/bin/${program}`, join(bin, program));
  symlinkSync(process.execPath, join(bin, 'node'));
  return bin;
}

describe('building', () => {
  const env = (path: string) => [
    ...['env', '-u', 'CXX', '-u', 'MAKE', '-u', 'PYTHON', '-u', 'npm_config_python'],
    `PATH=${path}`,
  ];

  test('build-native names missing tools before it downloads anything', async () => {
    const { code, stderr } = await callWith(env(machineWith('make')), 'build-native');
    expect([code, stderr]).toEqual([
      1,
      'exitwatch: cannot compile the addon; install a C++ compiler (g++ or clang++), a C compiler (gcc or clang) and Python 3\n',
    ]);
  });

  itAsRoot('build-native reports a folder it may not write to, even without a home', async () => {
    const nobody = ['setpriv', '--reuid=12345', '--regid=12345', '--clear-groups'];
    const { code, stderr } = await callWith([...nobody, 'env', '-u', 'HOME'], 'build-native');
    expect([code, stderr]).toEqual([
      1,
      `exitwatch: the addon belongs in ${REPOSITORY}, which this user cannot write\n`,
    ]);
  });

  test('build names missing tools', async () => {
    const path = machineWith('python3');
    const script = join(REPOSITORY, 'scripts', 'build-addon.mjs');
    const build = new LineProcess(env(path)[0] ?? '', [...env(path).slice(1), 'node', script]);
    expect(await build.ended).toBe(1);
    expect(build.stderr).toBe(
      'exitwatch: cannot build the addon; install a C++ compiler (g++ or clang++), a C compiler (gcc or clang) and make\n',
    );
  });

  test('npm start reports that it builds, names missing tools, and says that it cannot start', async () => {
    const clone = join(folder, 'clone');
    mkdirSync(clone);
    const parts = [
      'package.json',
      'binding.gyp',
      'tsconfig.json',
      'tsconfig.build.json',
      'scripts',
      'src',
    ];
    for (const part of [...parts, 'native']) {
      cpSync(join(REPOSITORY, part), join(clone, part), { recursive: true });
    }
    symlinkSync(join(REPOSITORY, 'node_modules'), join(clone, 'node_modules'));
    const npm = new LineProcess('npm', ['--silent', 'start'], {
      cwd: clone,
      env: { ...process.env, PATH: machineWith('env', 'sh', 'make', 'npm') },
    });
    const lines = await npm.rest();
    expect(await npm.ended).toBe(1);
    expect(lines).toEqual([]);
    expect(npm.stderr.split('\n').slice(0, 3)).toEqual([
      'exitwatch: building; the first time, this takes a minute or two',
      'exitwatch: cannot build the addon; install a C++ compiler (g++ or clang++), a C compiler (gcc or clang) and Python 3',
      'exitwatch: cannot start, because the build failed',
    ]);
  }, 180_000); // it compiles all of src
});
