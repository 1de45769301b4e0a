import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const folder = mkdtempSync(join(tmpdir(), 'exitwatch-nothing-'));
const child = spawn('sleep', ['1004']);

it('removes what it has made', () => {
  writeFileSync(join(folder, 'file'), '');
});

afterAll(async () => {
  child.kill();
  await once(child, 'close');
  rmSync(folder, { recursive: true });
});
