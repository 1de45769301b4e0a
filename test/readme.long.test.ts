import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { newProject, pack } from './support/package';
import { LineProcess, REPOSITORY, run } from './support/programs';
import { hasQemu } from './support/qemu';

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
  ({ folder, tarball } = await pack());
  project = newProject(folder, 'project');
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

/** Outside of CI, those with a virtual machine are left out where there is none. */
const RUNNABLE = hasQemu() ? SNIPPETS : SNIPPETS.filter(({ code }) => !code.includes('qemu'));

test.each(RUNNABLE)(
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
    const printed = await node.rest();
    expect(await node.ended).toBe(0);
    expect(node.stderr).toBe('');
    const isRoot = process.getuid?.() === 0;
    if (snippet.code.includes('sender.ancestors') && isRoot) {
      expect(printed).toEqual([expect.stringMatching(/^SIGTERM by sh \(\d+\), uid 0 < node < /)]);
    }
  },
);
