// Lane: patient

import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';

import { MAY_LISTEN } from '../support/kernel';
import { newProject, pack, version } from '../support/package';
import { REPOSITORY, run } from '../support/programs';
import { fetchPackages } from '../support/registry';

const bundlers = fetchPackages('bundlers', {
  esbuild: '~0.28.0',
  vite: '^8.0.0',
  webpack: '^5.100.0',
  'webpack-cli': '^7.0.0',
});
const bun = fetchPackages('bun', { bun: '~1.4.0' });

/** The configuration files and commands under one heading of the page. */
interface Recipe {
  bundler: string;
  place: string;
  files: { name: string; text: string }[];
  commands: string;
}

const PAGE = readFileSync(join(REPOSITORY, 'docs', 'bundlers.md'), 'utf8');

const RECIPES: Recipe[] = [
  ...PAGE.matchAll(/^### (\w+) (outside|inside)\n(.*?)(?=^##|$(?![^]))/gms),
].map(([, bundler = '', place = '', text = '']) => ({
  bundler,
  place,
  files: [...text.matchAll(/^```js\n(?:\/\/ (\S+)\n)(.*?)^```$/gms)].map(
    ([, name = '', code = '']) => ({ name, text: code }),
  ),
  commands: [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, code = '']) => code).join(''),
}));

/** Prints the source, and how its child ended, with all three entry points in use. */
const APP = `
  import { spawn } from 'node:child_process';
  import { ExitMonitor } from 'exitwatch';
  import { isAlive } from 'exitwatch/process';
  import { shouldRestart } from 'exitwatch/vm';
  const child = spawn('sh', ['-c', 'exit 7']);
  const monitor = new ExitMonitor({ pollIntervalMs: 50 });
  const { identity, exited } = monitor.watch(child.pid);
  monitor.start().then(async ({ source, downgrade }) => {
    const { how, exitCode } = await exited;
    await monitor.close();
    const code = downgrade?.code.startsWith('ERR_') ? downgrade.code : null;
    const alive = isAlive(identity);
    console.log(JSON.stringify({ source, code, how, exitCode, alive, vm: typeof shouldRestart }));
  });
`;

const SEEN = {
  source: MAY_LISTEN ? 'connector' : 'pidfd',
  code: MAY_LISTEN ? null : 'ERR_EXITWATCH_NOT_PERMITTED',
  ...{ how: 'exited', exitCode: 7, alive: 'dead', vm: 'function' },
};

const POLLED = {
  ...{ source: 'poll', code: 'ERR_EXITWATCH_NO_ADDON' },
  ...{ how: 'unknown', exitCode: null, alive: 'dead', vm: 'function' },
};

let folder = '';
let tarball = '';

beforeAll(async () => {
  ({ folder, tarball } = await pack());
}, 400_000);

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Makes a project with the package and the program to bundle. */
async function projectWithApp(name: string): Promise<string> {
  const project = newProject(folder, name);
  await run('npm', ['install', '--prefer-offline', tarball], { cwd: project });
  writeFileSync(join(project, 'app.js'), APP);
  return project;
}

async function bundle(project: string, { files, commands }: Recipe): Promise<void> {
  for (const { name, text } of files) writeFileSync(join(project, name), text);
  const binaries = join(bundlers.folder, 'node_modules', '.bin');
  const env = { ...process.env, PATH: `${binaries}${delimiter}${process.env['PATH'] ?? ''}` };
  const { stdout, stderr } = await run('sh', ['-ec', commands.replaceAll('npx ', '')], {
    ...{ cwd: project, env },
  });
  expect(`${stdout}${stderr}`).not.toMatch(/warning/i);
}

interface Ran {
  told: unknown;
  /** The warnings of Node.js. */
  warnings: string[];
}

async function call(command: string, args: string[], cwd: string, env = {}): Promise<Ran> {
  const { stdout, stderr } = await run(command, args, { cwd, env: { ...process.env, ...env } });
  const warnings = stderr.split('\n').filter((line) => line.includes('Warning: '));
  return { told: JSON.parse(stdout), warnings };
}

const node = (file: string, cwd: string, env?: NodeJS.ProcessEnv) =>
  call(process.execPath, [file], cwd, env);

const FORMATS = ['app.cjs', 'app.mjs'];

test('the page has each bundler, outside and inside', () => {
  expect(RECIPES.map(({ bundler, place }) => `${bundler} ${place}`)).toEqual(
    ['outside', 'inside'].flatMap((place) =>
      ['esbuild', 'webpack', 'vite'].map((b) => `${b} ${place}`),
    ),
  );
});

describe.each(RECIPES.filter(({ place }) => place === 'outside'))('$bundler', (recipe) => {
  bundlers.it(
    'leaves the package, with its addon, outside the bundle',
    async () => {
      const project = await projectWithApp(`${recipe.bundler}-outside`);
      await bundle(project, recipe);
      for (const file of FORMATS) {
        expect(readFileSync(join(project, 'dist', file), 'utf8')).not.toMatch('EXITWATCH_NO_ADDON');
        expect(await node(join('dist', file), project)).toEqual({ told: SEEN, warnings: [] });
      }
    },
    120_000,
  );
});

describe.each(RECIPES.filter(({ place }) => place === 'inside'))('$bundler', (recipe) => {
  let project = '';
  /** A folder elsewhere, without installed packages. */
  let away = '';

  beforeAll(async () => {
    // The tests of this bundler are skipped, too.
    if (!existsSync(join(bundlers.folder, 'package.json'))) return;
    project = await projectWithApp(`${recipe.bundler}-inside`);
    await bundle(project, recipe);
    away = join(folder, `${recipe.bundler}-away`);
    cpSync(join(project, 'dist'), away, { recursive: true });
  }, 120_000);

  bundlers.it('finds the copied addon beside the bundle', async () => {
    for (const file of FORMATS) {
      expect(await node(file, away)).toEqual({ told: SEEN, warnings: [] });
    }
  });

  bundlers.it('finds the addon one folder up, as a chunk does', async () => {
    for (const file of FORMATS) {
      mkdirSync(join(away, 'chunks'), { recursive: true });
      cpSync(join(away, file), join(away, 'chunks', file));
      expect(await node(join('chunks', file), away)).toEqual({ told: SEEN, warnings: [] });
    }
  });

  bundlers.it('finds the addon of the package installed beside the bundle’s folder', async () => {
    rmSync(join(project, 'dist', 'prebuilds'), { recursive: true });
    for (const file of FORMATS) {
      expect(await node(join('dist', file), project)).toEqual({ told: SEEN, warnings: [] });
    }
  });

  bundlers.it('does not load the addon of another version', async () => {
    const installed = join(project, 'node_modules', 'exitwatch');
    const manifest = join(installed, 'package.json');
    const text = readFileSync(manifest, 'utf8');
    writeFileSync(manifest, text.replace(/"version": "[^"]+"/, '"version": "0.0.1"'));
    for (const file of FORMATS) {
      const { told, warnings } = await node(join('dist', file), project);
      expect(told).toEqual(POLLED);
      expect(warnings).toEqual([
        expect.stringContaining(`${installed} is not exitwatch ${version}`),
      ]);
    }
    writeFileSync(manifest, text);
  });

  bundlers.it('warns once and polls if there is no addon', async () => {
    const alone = join(folder, `${recipe.bundler}-alone`);
    mkdirSync(alone);
    for (const file of FORMATS) {
      cpSync(join(away, file), join(alone, file));
      // The working directory has the package and its binary, which must not be loaded.
      const { told, warnings } = await node(join(alone, file), project);
      expect(told).toEqual(POLLED);
      expect(warnings).toEqual([expect.stringContaining('[ERR_EXITWATCH_NO_ADDON]')]);
      const [warning = ''] = warnings;
      const places = ['prebuilds', `linux-${process.arch}`, 'exitwatch.node'].join('/');
      expect(warning).toMatch(`${join(alone, places)} does not exist`);
      expect(warning).toMatch(`exitwatch/package.json cannot be resolved from ${alone}`);
      expect(warning).toMatch('docs/bundlers.md');
    }
  });
});

describe('a bundle', () => {
  let project = '';

  beforeAll(async () => {
    const recipe = RECIPES.find(
      ({ bundler, place }) => bundler === 'esbuild' && place === 'inside',
    );
    if (!existsSync(join(bundlers.folder, 'package.json')) || recipe === undefined) return;
    project = await projectWithApp('one');
    await bundle(project, recipe);
  }, 120_000);

  bundlers.it('finds the addon whatever format stack traces have', async () => {
    const env = { NODE_OPTIONS: '--enable-source-maps --stack-trace-limit=0' };
    const file = join('dist', 'app.mjs');
    expect(await node(file, project, env)).toEqual({ told: SEEN, warnings: [] });
  });

  bundlers.it('warns once for all copies in a process and its workers', async () => {
    const alone = join(folder, 'copies');
    mkdirSync(alone);
    for (const file of FORMATS) cpSync(join(project, 'dist', file), join(alone, file));
    writeFileSync(
      join(alone, 'all.cjs'),
      `require('./app.cjs');
       import('./app.mjs').then(() => new (require('node:worker_threads').Worker)(__dirname + '/app.cjs'));`,
    );
    const { stdout, stderr } = await run(process.execPath, ['all.cjs'], { cwd: alone });
    const told = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(told).toEqual([POLLED, POLLED, POLLED]);
    expect(stderr.match(/ERR_EXITWATCH_NO_ADDON/g)).toHaveLength(1);
  });
});

describe('Bun', () => {
  bun.it(
    'polls with a warning instead of crashing in the addon',
    async () => {
      const project = await projectWithApp('bun');
      const binary = join(bun.folder, 'node_modules', '.bin', 'bun');
      const { told, warnings } = await call(binary, ['app.js'], project);
      expect(told).toEqual(POLLED);
      expect(warnings).toEqual([expect.stringMatching(/Bun [\d.]+ lacks .*use Node\.js/)]);
    },
    120_000,
  );
});
