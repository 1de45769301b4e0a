import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { LineProcess, REPOSITORY, run } from './support/programs';

interface Snippet {
  number: number;
  language: string;
  code: string;
}

const README = readFileSync(join(REPOSITORY, 'README.md'), 'utf8');
const SNIPPETS: Snippet[] = [...README.matchAll(/^```(ts|js)\n(.*?)^```$/gms)].map(
  ([, language = '', code = ''], index) => ({ number: index + 1, language, code }),
);

let folder = '';
/** A new project with the packed package in it, and nothing else. */
let project = '';
let tarball = '';

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'exitwatch-readme-'));
  const clone = join(folder, 'clone');
  project = join(folder, 'project');
  const { stdout } = await run('git', ['ls-files', '-co', '--exclude-standard'], {
    cwd: REPOSITORY,
  });
  for (const file of stdout.trim().split('\n')) {
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    cpSync(join(REPOSITORY, file), join(clone, file));
  }
  symlinkSync(join(REPOSITORY, 'node_modules'), join(clone, 'node_modules'));
  await run('npm', ['pack', '--pack-destination', folder], { cwd: clone });
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "private": true }');
  const { version } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
    version: string;
  };
  tarball = join(folder, `exitwatch-${version}.tgz`);
  await run('npm', ['install', '--prefer-offline', tarball], { cwd: project });
}, 240_000);

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** The files that a snippet is, as its reader would save it. */
async function save({ number, language, code }: Snippet): Promise<string> {
  if (language === 'js') {
    const file = join(project, `snippet${number}.${code.includes('require(') ? 'cjs' : 'mjs'}`);
    writeFileSync(file, code);
    return file;
  }
  const source = join(project, `snippet${number}.mts`);
  writeFileSync(source, code);
  await run(
    process.execPath,
    [
      join(REPOSITORY, 'node_modules', 'typescript', 'bin', 'tsc'),
      ...['--strict', '--exactOptionalPropertyTypes', '--module', 'node16', '--target', 'es2022'],
      ...['--typeRoots', join(REPOSITORY, 'node_modules', '@types'), '--types', 'node', source],
    ],
    { cwd: project },
  ).catch((error: unknown) => {
    throw new Error((error as { stdout: string }).stdout);
  });
  return source.replace(/mts$/, 'mjs');
}

test('the README has snippets in TypeScript, CommonJS and ESM', () => {
  const kinds = SNIPPETS.map(({ language, code }) =>
    language === 'ts' ? 'ts' : code.includes('require(') ? 'cjs' : 'esm',
  );
  expect(new Set(kinds)).toEqual(new Set(['ts', 'cjs', 'esm']));
});

test.each(SNIPPETS)(
  'snippet $number ($language) of the README runs as it stands',
  async (snippet) => {
    const file = await save(snippet);
    const node = new LineProcess(process.execPath, [file], { cwd: project });
    node.child.stdin.end();
    const isEndless = snippet.code.includes("scope: 'all' })");
    if (isEndless) {
      // It prints what ends, for ever: until it has printed something.
      const printed = node.line();
      const hasPrinted = printed.then(() => true);
      const killOne = async () => {
        await new LineProcess('sh', ['-c', 'kill -KILL $$']).ended;
        return false;
      };
      while (!(await Promise.race([hasPrinted, killOne()]))) continue;
      expect(await printed).toMatch(/was killed by|exited with|"event":"exit"/);
      node.child.kill();
      expect(node.stderr).toBe('');
      return;
    }
    await node.rest();
    expect(await node.ended).toBe(0);
    expect(node.stderr).toBe('');
  },
);

test('the packed package holds what is used, and nothing that npm would compile', async () => {
  const { stdout } = await run('tar', ['-tzf', tarball]);
  const files = stdout.trim().split('\n');
  expect(files).toContain('package/dist/index.js');
  expect(files).toContain(`package/prebuilds/linux-${process.arch}/exitwatch.node`);
  expect(
    files.filter((file) => /binding\.gyp|native|\.ts$/.test(file.replace('.d.ts', ''))),
  ).toEqual([]);
});
