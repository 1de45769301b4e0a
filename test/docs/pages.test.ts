// Lane: patient

import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { brokenLinks, type LinkedFiles } from '../support/links';
import { blocksOf, LINKED, PAGES } from '../support/pages';
import { REPOSITORY, run } from '../support/programs';

const SESSIONS = 'e2e/readme-sessions';
const SNIPPETS = 'e2e/snippets';
const VM_SNIPPETS = 'e2e/vm-snippets';
const VM_COMMANDS = 'e2e/vm-commands';
const COMMANDS = 'e2e/docs-commands';
const GUIDES = 'e2e/vm-guides';
const JOURNAL = 'e2e/journal-service';
const STORIES = 'e2e/stories';
const SUPERVISE = 'e2e/supervise';

/** The tests that run the code blocks of each page, in order, and compare the output. */
const TESTED_IN: Record<string, string[]> = {
  'README.md': [
    ...[SESSIONS, 'package/package', SESSIONS],
    ...[SNIPPETS, SNIPPETS, SNIPPETS, SESSIONS, JOURNAL, SNIPPETS],
    ...[SNIPPETS, SESSIONS, VM_SNIPPETS, VM_SNIPPETS],
  ],
  'docs/architecture.md': ['docs/pages'],
  'docs/bundlers.md': Array.from({ length: 10 }, () => 'package/bundlers'),
  'docs/command-line.md': [SESSIONS, SESSIONS],
  'docs/cgroups.md': [SNIPPETS],
  'docs/containers.md': [SNIPPETS],
  'docs/errors.md': [SNIPPETS],
  'docs/events.md': [SNIPPETS, SNIPPETS],
  'docs/formats.md': ['docs/formats'],
  'docs/journal.md': [JOURNAL, 'cli/why', SNIPPETS],
  'docs/memory.md': [SNIPPETS, SNIPPETS, COMMANDS],
  'docs/options.md': [SNIPPETS, SNIPPETS],
  'docs/performance.md': [SNIPPETS],
  'docs/post-mortem.md': Array.from({ length: 16 }, () => STORIES),
  'docs/services.md': [SNIPPETS, SNIPPETS],
  'docs/sources.md': [SNIPPETS],
  'docs/stop-safely.md': [COMMANDS, SNIPPETS, SNIPPETS, SNIPPETS],
  'docs/supervise.md': Array.from({ length: 5 }, () => SUPERVISE),
  'docs/supervisor.md': [SNIPPETS, SNIPPETS],
  'docs/troubleshooting.md': [SNIPPETS],
  'docs/virtual-machines.md': [VM_SNIPPETS, VM_SNIPPETS, SNIPPETS, SNIPPETS, VM_COMMANDS],
  'docs/vm-causes.md': [VM_SNIPPETS],
  'docs/vm-control.md': [
    ...[VM_SNIPPETS, VM_COMMANDS, VM_SNIPPETS, VM_SNIPPETS, VM_COMMANDS, VM_SNIPPETS, VM_SNIPPETS],
    ...[VM_SNIPPETS, VM_SNIPPETS],
  ],
  'docs/vm-daemon.md': [VM_COMMANDS, ...Array.from({ length: 4 }, () => VM_SNIPPETS)],
  'docs/vm-guides.md': [VM_COMMANDS, VM_COMMANDS, VM_COMMANDS, GUIDES, GUIDES, GUIDES],
  'docs/wait-for-one.md': [COMMANDS, SNIPPETS, SNIPPETS, SNIPPETS, SNIPPETS],
  'docs/watch-everything.md': [COMMANDS, SNIPPETS, SNIPPETS],
  'docs/who-did-it.md': [COMMANDS, SNIPPETS, SNIPPETS, 'e2e/journal-query', 'e2e/journal-query'],
};

test.each(PAGES)('each code block of %s has a test', (page) => {
  const tests = TESTED_IN[page] ?? [];
  expect(blocksOf(page)).toHaveLength(tests.length);
  for (const name of tests) {
    expect([name, existsSync(join(REPOSITORY, 'test', `${name}.test.ts`))]).toEqual([name, true]);
  }
});

const read = (path: string) => readFileSync(join(REPOSITORY, path), 'utf8');

const manifest = JSON.parse(read('package.json')) as {
  repository: { url: string };
  homepage: string;
  bugs: { url: string };
  scripts: Record<string, string>;
};
const repository = manifest.repository.url.replace(/^git\+|\.git$/g, '');

/** The files of a clone. Files that git ignores do not count. */
function trackedFiles(): string[] {
  const args = ['ls-files', '-co', '--exclude-standard'];
  const { stdout } = spawnSync('git', args, { cwd: REPOSITORY, encoding: 'utf8' });
  return stdout.split('\n').filter((file) => existsSync(join(REPOSITORY, file)));
}

/** The files that npm would publish. Build output counts only if it exists. */
async function packedFiles(): Promise<string[]> {
  const args = ['pack', '--dry-run', '--json', '--ignore-scripts'];
  const { stdout } = await run('npm', args, { cwd: REPOSITORY });
  const [{ files }] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  return files.map(({ path }) => path);
}

const among = (paths: readonly string[]): LinkedFiles => ({
  read,
  has: (path) => paths.some((each) => each === path || each.startsWith(`${path}/`)),
  repository,
});

describe('links', () => {
  test('every link resolves in a clone', () => {
    expect(brokenLinks(LINKED, among(trackedFiles()))).toEqual([]);
  });

  test('every link resolves in the package', async () => {
    const packed = await packedFiles();
    const pages = packed.filter((path) => path.endsWith('.md'));
    expect(pages).toEqual(expect.arrayContaining(LINKED));
    expect(brokenLinks(pages, among(packed))).toEqual([]);
  });

  test('a broken link is found', () => {
    const pages: Record<string, string> = {
      'a.md': '# A\n[1](b/c.md) [2](b/d.md) [3](#a) [4](#b) [5](b/c.md#two-words)\n[x]: ../up.md\n',
      'b/c.md': '# C\n## Two `words`\n`[6](code.md)` [7](../a.md#c) [8](https://example.org/x)\n',
    };
    const files: LinkedFiles = {
      read: (page) => pages[page] ?? '',
      has: (path) => path in pages,
      repository: 'https://example.org/us',
    };
    expect(brokenLinks(Object.keys(pages), files)).toEqual([
      ...['a.md: b/d.md', 'a.md: #b', 'a.md: ../up.md', 'b/c.md: ../a.md#c'],
    ]);
    const own =
      '[1](https://example.org/us/blob/main/b/c.md) [2](https://example.org/us/blob/main/d)';
    expect(brokenLinks(['own.md'], { ...files, read: () => own })).toEqual([
      'own.md: https://example.org/us/blob/main/d',
    ]);
  });

  test('the index of docs lists every page', () => {
    const index = read('docs/README.md');
    const missing = PAGES.filter((page) => page.startsWith('docs/') && page !== 'docs/README.md')
      .map((page) => basename(page))
      .filter((name) => !index.includes(`(${name})`));
    expect(missing).toEqual([]);
  });

  test('only package.json names the owner of the repository', () => {
    expect(manifest.homepage).toBe(`${repository}#readme`);
    expect(manifest.bugs.url).toBe(`${repository}/issues`);
    const others = LINKED.flatMap((page) =>
      [...read(page).matchAll(/https:\/\/github\.com\/[\w-]+\/exitwatch(?![\w-])/g)]
        .filter(([url]) => url !== repository)
        .map(([url]) => `${page}: ${url}`),
    );
    expect(others).toEqual([]);
  });
});

test('the README has at most 250 lines', () => {
  expect(read('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(250);
});

test('each script that a page names is in package.json', () => {
  const missing = LINKED.flatMap((page) =>
    [...read(page).matchAll(/npm run ([\w:]+)/g)]
      .filter(([, name = '']) => !(name in manifest.scripts))
      .map(([command]) => `${page}: ${command}`),
  );
  expect(missing).toEqual([]);
});

/** Pages for people who change the code. */
const ABOUT_CODE = ['docs/architecture.md', 'CONTRIBUTING.md', 'SECURITY.md'];

test.each(ABOUT_CODE)('each file and folder that %s names exists', (page) => {
  const tracked = trackedFiles();
  const isThere = (name: string) =>
    name.includes('/')
      ? among(tracked).has(name.replace(/\/$/, ''))
      : tracked.some((file) => basename(file) === name);
  const text = read(page);
  const spans = [...text.matchAll(/`([^`\n]+)`/g)].map(([, span = '']) => span);
  const paths = spans.filter((span) =>
    /^(\.?(src|native|test|scripts|examples|docs|bench|ci)\/[\w./-]*|[\w-]+\.(cc|h|ts|mjs|js))$/.test(
      span,
    ),
  );
  const picture = [...text.matchAll(/^ {2}((?:src|native)\/[\w./]+)/gm)].map(
    ([, path = '']) => path,
  );
  expect(paths.length).toBeGreaterThan(5);
  const missing = [...paths, ...picture].filter((path) => !path.includes('NAME') && !isThere(path));
  expect(missing).toEqual([]);
});

test('docs/architecture.md shows every floor that has files', () => {
  const [picture = ''] = blocksOf('docs/architecture.md').map(({ text }) => text);
  const rooms = new Set(
    trackedFiles().flatMap((file) => /^(?:src|native)\/[\w-]+(?=\/)/.exec(file) ?? []),
  );
  expect([...rooms].filter((room) => !picture.includes(room))).toEqual([]);
});

test('docs/errors.md has every code, docs/troubleshooting.md and docs/cgroups.md every reason', () => {
  const [, codes = ''] =
    /type ExitwatchErrorCode =(.*?);\n/s.exec(read('src/common/errors.ts')) ?? [];
  const [, reasons = ''] =
    /export type Downgrade = \{(.*?);\n/s.exec(read('src/events/exit-event.ts')) ?? [];
  const [, locations = ''] =
    /type LocationReason =(.*?);\n/s.exec(read('src/where/location.ts')) ?? [];
  const names = (text: string) =>
    [...text.matchAll(/\| '([\w-]+)'/g)].map(([, name = '']) => `\`${name}\``);
  expect(names(codes).length).toBeGreaterThan(30);
  expect(names(reasons).length).toBeGreaterThan(10);
  expect(names(locations).length).toBeGreaterThan(5);
  const absent = (page: string, all: string[]) => all.filter((name) => !read(page).includes(name));
  expect(absent('docs/errors.md', names(codes))).toEqual([]);
  expect(absent('docs/troubleshooting.md', names(reasons))).toEqual([]);
  const quoted = names(locations).map((name) => `\`'${name.slice(1, -1)}'\``);
  expect(absent('docs/cgroups.md', quoted)).toEqual([]);
});
