import { existsSync } from 'node:fs';
import { join } from 'node:path';

import { blocksOf, PAGES } from './support/pages';
import { REPOSITORY } from './support/programs';

const SESSIONS = 'readme-sessions.long';
const SNIPPETS = 'snippets.long';
const VM_SNIPPETS = 'vm-snippets.long';
const VM_COMMANDS = 'vm-commands.long';
const COMMANDS = 'docs-commands.long';
const GUIDES = 'vm-guides.long';

/** The test that runs each block of a page, in their order, and compares what it prints. */
const TESTED_IN: Record<string, string[]> = {
  'README.md': [
    ...[SESSIONS, SESSIONS],
    ...Array.from({ length: 7 }, () => SNIPPETS),
    ...['journal-query', 'journal-query', SNIPPETS, SNIPPETS],
    ...[VM_SNIPPETS, VM_SNIPPETS, VM_SNIPPETS, VM_COMMANDS],
    ...[SNIPPETS, SNIPPETS, SNIPPETS, SNIPPETS],
    ...[SESSIONS, SESSIONS, SESSIONS, SESSIONS],
  ],
  'docs/bundlers.md': Array.from({ length: 10 }, () => 'bundlers.long'),
  'docs/formats.md': ['formats'],
  'docs/stop-safely.md': [COMMANDS],
  'docs/vm-control.md': [
    ...[VM_SNIPPETS, VM_COMMANDS, VM_SNIPPETS, VM_SNIPPETS, VM_COMMANDS, VM_SNIPPETS, VM_SNIPPETS],
    VM_SNIPPETS,
  ],
  'docs/vm-daemon.md': [VM_COMMANDS, VM_SNIPPETS, VM_SNIPPETS],
  'docs/vm-guides.md': [VM_COMMANDS, VM_COMMANDS, VM_COMMANDS, GUIDES, GUIDES, GUIDES],
  'docs/wait-for-one.md': [COMMANDS, SNIPPETS],
  'docs/watch-everything.md': [COMMANDS, SNIPPETS],
  'docs/who-did-it.md': [COMMANDS],
};

test.each(PAGES)('each code block of %s has a test', (page) => {
  const tests = TESTED_IN[page] ?? [];
  expect(blocksOf(page)).toHaveLength(tests.length);
  for (const name of tests) {
    expect([name, existsSync(join(REPOSITORY, 'test', `${name}.test.ts`))]).toEqual([name, true]);
  }
});
