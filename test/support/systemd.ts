import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { itAsRootIf } from './privilege';
import { LineProcess, REPOSITORY } from './programs';

const SYSTEMD = '/lib/systemd/systemd';

/** The cgroups that systemd makes at the top of a hierarchy if it is not confined. */
const UNCONFINED = /^(init\.scope|system\.slice)$/;

/** The first of these tools, and systemd, that is not installed. */
export function lacksForSystemd(...tools: string[]): string | undefined {
  return [SYSTEMD, ...tools].find((tool) => spawnSync(tool, ['--version']).status !== 0);
}

/**
 * Declares a test that boots systemd and needs these additional tools. Outside CI the test is
 * skipped if one is missing, and its title says why.
 */
export function itUnderSystemd(
  title: string,
  body: jest.ProvidesCallback,
  ...tools: string[]
): void {
  const lacks = lacksForSystemd(...tools);
  itAsRootIf(lacks === undefined, `needs ${lacks}`)(title, body);
}

/**
 * Boots systemd in namespaces of its own, or as a user's manager in the host's pid namespace, with
 * the units of a folder, and runs the script there. Returns the lines that the script prints.
 */
export async function underSystemd(
  folder: string,
  units: readonly string[],
  script: readonly string[],
  manager: 'system' | 'user' = 'system',
): Promise<string[]> {
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  writeFileSync(
    join(bin, 'exitwatch'),
    `#!/bin/sh\nexec ${process.execPath} /run/repository/dist/cli/main.js "$@"\n`,
    { mode: 0o755 },
  );
  writeFileSync(
    join(bin, 'systemctl'),
    `#!/bin/sh\nXDG_RUNTIME_DIR=/run/manager exec /bin/systemctl --${manager} "$@"\n`,
    { mode: 0o755 },
  );
  const answers = join(folder, 'answers');
  const lines = ['#!/bin/sh', 'exec >/run/test/answers 2>&1', ...script];
  writeFileSync(join(folder, 'test.sh'), [...lines, 'systemctl --force exit 7', ''].join('\n'), {
    mode: 0o755,
  });
  writeFileSync(
    join(folder, 'test.service'),
    [
      '[Unit]',
      'DefaultDependencies=no',
      '[Service]',
      'Type=oneshot',
      'TimeoutStartSec=50',
      'ExecStart=/run/test/test.sh',
      'ExecStopPost=/usr/local/bin/systemctl --force exit 7',
      '',
    ].join('\n'),
  );
  const cgroups = cgroupsAtTop(UNCONFINED);
  const systemd = new LineProcess(join(REPOSITORY, 'test', 'programs', 'under-systemd.sh'), [
    ...[manager, folder, 'test.service', ...units],
  ]);
  const code = await systemd.ended;
  const said = existsSync(answers) ? readFileSync(answers, 'utf8').trimEnd().split('\n') : [];
  expect({ said, stderr: systemd.stderr, code }).toEqual({ said, stderr: '', code: 7 });
  expect(cgroupsAtTop(UNCONFINED)).toEqual(cgroups);
  expect(cgroupsAtTop(new RegExp(`^exitwatch-test-${systemd.pid}$`))).toEqual([]);
  return said;
}

/** The cgroups with such a name at the top of any hierarchy. */
function cgroupsAtTop(name: RegExp): string[] {
  const root = '/sys/fs/cgroup';
  const hierarchies = ['.', ...readdirSync(root)].map((each) => join(root, each));
  return hierarchies.flatMap((path) =>
    namesIn(path)
      .filter((each) => name.test(each))
      .map((each) => join(path, each)),
  );
}

function namesIn(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return []; // a file
  }
}
