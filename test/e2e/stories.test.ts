// Lane: patient

import { execFile, execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { itIf } from '../support/privilege';
import { REPOSITORY } from '../support/programs';
import { hasQemu } from '../support/qemu';
import { lacksForSystemd } from '../support/systemd';

const STORIES = join(REPOSITORY, 'test', 'kernels', 'stories.mjs');

/** All of them take minutes: `npm run test:stories`. */
const SOME = ['scripted', 'restarted', 'leaving', 'deploy'];

/** The machine is emulated. */
const LONGEST_MS = 10 * 60_000;

/** Whether Debian's kernel can be had, which is an error in CI if not. */
function isPrepared(): boolean {
  if (!hasQemu() || lacksForSystemd('runc') !== undefined || process.arch !== 'x64') return false;
  try {
    execFileSync(process.execPath, [STORIES, '--prepare'], { stdio: 'pipe' });
    return true;
  } catch (error) {
    if (process.env['CI'] !== undefined) throw error;
    return false;
  }
}

itIf(isPrepared(), "needs QEMU, systemd, runc, and Debian's packages")(
  'a machine with systemd tells what the docs say of services that end',
  async () => {
    // It fails if what it sees differs.
    const { stdout } = await promisify(execFile)(process.execPath, [STORIES, ...SOME]);
    expect(stdout).toBe('');
  },
  LONGEST_MS,
);
