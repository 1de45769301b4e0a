// Lane: patient

// docs/supervise.md, as it stands there: the commands, the configurations, and a container of runc.
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { call, installCommand, MAIN } from '../support/command';
import { kill } from '../support/kill';
import { blockWith, likeOnPage } from '../support/pages';
import { itAsRoot } from '../support/privilege';
import { LineProcess, REPOSITORY } from '../support/programs';
import { arrives } from '../support/wait';

const PAGE = 'docs/supervise.md';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-page-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true, force: true });
});

itAsRoot('two services are kept alive, and one tells who has ended it', async () => {
  const { env } = installCommand(folder);
  const commands = blockWith(PAGE, 'exitwatch supervise services.json');
  const shell = new LineProcess('bash', ['-c', commands], { cwd: folder, env });
  const lines: string[] = [];
  try {
    for await (const line of shell.lines) {
      lines.push(line);
      if (line === 'web is stopped') break; // the supervisor still has the output of the shell
    }
  } finally {
    for (const pid of await supervisorsIn(folder)) kill(pid, 'SIGTERM');
  }
  await arrives('the end of the supervisor', shell.ended);
  const [header = '', db = '', web = '', ...told] = lines;
  expect(header).toMatch(/^NAME +PHASE/);
  expect(db).toMatch(/^db +running +yes +\d+/);
  expect(web).toMatch(/^web +running +yes +\d+/);
  blockWith(PAGE, 'web ended: killed SIGTERM')
    .trimEnd()
    .split('\n')
    .forEach((line, at) => {
      if (!line.startsWith('           uid')) expect(told[at]).toMatch(likeOnPage(line));
      else expect(told[at]).toMatch(/^ {11}uid \d+, cgroup \S+ < /);
    });
});

/** The supervisors that run in a folder. */
async function supervisorsIn(where: string): Promise<number[]> {
  const find =
    'for p in $(pgrep -f "supervise services.json"); do echo "$p $(readlink /proc/$p/cwd)"; done';
  const rows = await new LineProcess('sh', ['-c', find]).rest();
  const found = rows.map((row) => row.split(' '));
  return found.filter(([, cwd]) => cwd === where).map(([pid]) => Number(pid));
}

test('the module is a configuration', async () => {
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(REPOSITORY, join(folder, 'node_modules', 'exitwatch'));
  const file = join(folder, 'services.mjs');
  writeFileSync(file, blockWith(PAGE, 'defineServices'));
  const { code, lines } = await call('supervise', file, '--check');
  expect({ code, lines }).toEqual({ code: 0, lines: [`${file}: 2 services`] });
});

test('the machine is a configuration', async () => {
  const file = join(folder, 'services.json');
  writeFileSync(file, blockWith(PAGE, '"kind": "vm"'));
  const { code, lines } = await call('supervise', file, '--check');
  expect({ code, lines }).toEqual({ code: 0, lines: [`${file}: 1 service`] });
});

/** A container of runc with the host's files, whose first process is that of the page. */
class RuncContainer {
  readonly id = `exitwatch-supervise-${process.pid}-${Date.now()}`;
  readonly process: LineProcess;

  constructor(bundle: string, services: object[]) {
    const [, entry = '[]'] = /^ENTRYPOINT (.*)$/m.exec(blockWith(PAGE, 'ENTRYPOINT')) ?? [];
    const [, ...args] = JSON.parse(entry) as string[];
    const config = join(bundle, 'services.json');
    writeFileSync(config, JSON.stringify({ services }));
    const rootfs = join(bundle, 'rootfs');
    mkdirSync(rootfs);
    const given = args.map((arg) => (arg === '/etc/services.json' ? config : arg));
    writeFileSync(
      join(bundle, 'config.json'),
      JSON.stringify(
        specification(bundle, [
          process.execPath,
          MAIN,
          ...given,
          '--state-dir',
          join(bundle, 'state'),
        ]),
      ),
    );
    this.process = new LineProcess('runc', ['run', '--bundle', bundle, this.id]);
  }

  /** Sends a signal to its first process, as `docker stop` does. */
  async kill(signal: string): Promise<void> {
    await new LineProcess('runc', ['kill', this.id, signal]).ended;
  }

  async exec(...args: string[]): Promise<string[]> {
    return new LineProcess('runc', ['exec', this.id, ...args]).rest();
  }
}

/** Programs are the host's; processes are its own. */
function specification(bundle: string, args: readonly string[]): object {
  const mounts = [...new Set([REPOSITORY, bundle, ...programFolders(join(bundle, 'rootfs'))])];
  return {
    ociVersion: '1.0.2',
    process: {
      ...{ args, cwd: bundle, user: { uid: 0, gid: 0 }, noNewPrivileges: true },
      env: [`PATH=${process.env['PATH'] ?? ''}`],
      capabilities: { bounding: ['CAP_KILL'], effective: ['CAP_KILL'], permitted: ['CAP_KILL'] },
    },
    root: { path: 'rootfs', readonly: false },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['mode=755'] },
      ...mounts.map((path) => ({
        ...{ destination: path, type: 'none', source: path, options: ['rbind'] },
      })),
    ],
    linux: { namespaces: ['pid', 'ipc', 'mount'].map((type) => ({ type })) },
  };
}

/** Those of the host, as folders to mount; links are made. */
function programFolders(rootfs: string): string[] {
  const folders = ['/usr', '/bin', '/sbin', '/lib', '/lib64', '/etc'].filter(existsSync);
  for (const path of folders) {
    if (lstatSync(path).isSymbolicLink()) symlinkSync(readlinkSync(path), join(rootfs, path));
  }
  return folders.filter((path) => !lstatSync(path).isSymbolicLink());
}

const OBEDIENT = 'trap "exit 7" TERM; trap "echo hup" HUP; echo up; while :; do sleep 0.02; done';

itAsRoot(
  'a container of runc is stopped in order, with the status of its main service',
  async () => {
    const container = new RuncContainer(folder, [
      { name: 'side', command: 'sleep', args: ['1000'] },
      { name: 'app', main: true, command: 'sh', args: ['-c', OBEDIENT], after: ['side'] },
    ]);
    const printed: string[] = [];
    for await (const line of container.process.lines) {
      printed.push(line);
      if (line.includes('app: ready')) {
        const exitwatch = [process.execPath, MAIN];
        const list = await container.exec(
          ...exitwatch,
          'service',
          'list',
          '--state-dir',
          join(folder, 'state'),
        );
        expect(list[2]).toMatch(/^app +running +yes/);
        await container.kill('TERM');
      }
    }
    const code = await container.process.ended;
    expect({ code, printed, stderr: container.process.stderr }).toMatchObject({ code: 7 });
    const ends = printed
      .filter((line) => line.includes(' ended: '))
      .map((line) => line.split('  ')[1]);
    expect(ends).toEqual([
      expect.stringMatching(/^app: ended: exited 7; we were asked to stop it/),
      expect.stringMatching(/^side: ended: killed SIGTERM; we were asked to stop it/),
    ]);
  },
);
