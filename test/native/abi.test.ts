// Lane: patient

import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ABI_DIGEST } from '../../src/native/abi';
import { loadAddon } from '../../src/native/load-addon';

import { REPOSITORY } from '../support/programs';

const SCRIPT = join(REPOSITORY, 'scripts', 'generate-abi.mjs');

/** What the check reports about a copy in which one line of one file is changed. */
function checkAfter(file: string, line: RegExp, changed: string): string {
  const root = mkdtempSync(join(tmpdir(), 'exitwatch-abi-'));
  try {
    for (const folder of ['native/abi', 'src/native']) {
      cpSync(join(REPOSITORY, folder), join(root, folder), { recursive: true });
    }
    const path = join(root, file);
    const before = readFileSync(path, 'utf8');
    const after = before.replace(line, changed);
    expect(after).not.toBe(before);
    writeFileSync(path, after);
    const env = { ...process.env, EXITWATCH_ABI_ROOT: root };
    const { status, stderr } = spawnSync(process.execPath, [SCRIPT, '--check'], { env });
    expect(status).toBe(1);
    return stderr.toString();
  } finally {
    rmSync(root, { recursive: true });
  }
}

test('the addon and TypeScript describe the same binary layout', () => {
  const { status, stderr } = spawnSync(process.execPath, [SCRIPT, '--check']);
  expect({ status, stderr: stderr.toString() }).toEqual({ status: 0, stderr: '' });
  expect(loadAddon().abi).toBe(ABI_DIGEST);
});

test.each([
  ['a field that only C++ has', 'record.h', /( {2}double cgroup = 0;)/, '$1 double added = 0;'],
  ['a field that C++ no longer has', 'record.h', / {2}int32_t parent_pid = 0;/, ''],
  ['a reason that only C++ has', 'failure.h', /( {2}kNoTrial,)/, '  kAdded,\n$1'],
])('%s is reported by name', (_, header, line, changed) => {
  const names = { 'record.h': /ExitRecord\.(added|parentPid)/, 'failure.h': /Refusal\.added/ };
  expect(checkAfter(`native/abi/${header}`, line, changed)).toMatch(
    names[header as keyof typeof names],
  );
});

test('a field that only TypeScript has is reported by name', () => {
  const said = checkAfter('src/native/abi.ts', /( {2}parentPid: \d+,)/, '$1\n  added: 1000,');
  expect(said).toMatch(/is out of date in ExitRecord\.added/);
});
