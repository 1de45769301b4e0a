// Lane: patient

import { readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { join } from 'node:path';

import { newProject, pack } from '../support/package';
import { REPOSITORY, run } from '../support/programs';
import { fetchPackages, type Fetched } from '../support/registry';

/**
 * Versions of TypeScript and Node's types: the installed ones, and the oldest that the README
 * names.
 */
const TOOLCHAINS: [title: string, toolchain: Fetched, ...options: string[]][] = [
  ['the installed TypeScript', { folder: REPOSITORY, it }, '--ignoreDeprecations', '6.0'],
  ['TypeScript 5.0', fetchPackages('types', { typescript: '5.0.4', '@types/node': '20.12.0' })],
];

const SETTINGS = [
  { resolution: 'node10', module: 'commonjs', files: ['app.ts'] },
  { resolution: 'node16', module: 'node16', files: ['app.cts', 'app.mts'] },
  { resolution: 'nodenext', module: 'nodenext', files: ['app.cts', 'app.mts'] },
  { resolution: 'bundler', module: 'es2022', files: ['app.mts'] },
];

/** A typical program, with a line that must not compile. */
const APP = `
  import { spawn } from 'node:child_process';
  import { ExitMonitor, waitForExit, type ExitEvent, type MonitorEvent } from 'exitwatch';
  import { JournalWriter, type JournalRow } from 'exitwatch/journal';
  import { isAlive, stop, type StopResult } from 'exitwatch/process';
  import { Keeper, Supervisor, type KeeperRun } from 'exitwatch/supervisor';
  import { VmMonitor, type VmVerdict } from 'exitwatch/vm';

  export function senderName(event: MonitorEvent): string {
    if (event.event !== 'exit') return '';
    // @ts-expect-error It is a string.
    const wrong: number | undefined = event.sender?.name;
    if (event.sender?.pid != null) {
      const { name, uid, ancestors } = event.sender;
      return [name, uid.toFixed(), ...ancestors.map((ancestor) => ancestor.name)].join();
    }
    return event.how === 'killed' ? (event.sender?.name ?? event.signal) : (wrong?.toFixed() ?? '');
  }
  export const endedBy = (result: StopResult): string | undefined => result.endedBy?.name;
  export const all = [ExitMonitor, JournalWriter, Keeper, Supervisor, VmMonitor, stop];
  export type Stop = VmVerdict;
  export const numberOf = ({ seq }: JournalRow): number => seq;
  export type Run = KeeperRun;

  async function main(): Promise<void> {
    const { pid = 0 } = spawn('sleep', ['100']);
    const end = waitForExit(pid, { timeoutMs: 10_000 });
    process.kill(pid, 'SIGTERM');
    const event: ExitEvent = await end;
    const name: string | undefined = event.sender?.name;
    const parents: number | undefined = event.sender?.ancestors?.length;
    console.log(event.event, event.pid === pid, isAlive(pid), typeof name, typeof parents);
  }
  void main();
`;

let folder = '';
let tarball = '';

// The oldest compiler takes minutes on a busy machine.
jest.setTimeout(300_000);

beforeAll(async () => {
  ({ folder, tarball } = await pack());
}, 400_000);

afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

describe.each(TOOLCHAINS)('%s', (title, toolchain, ...options) => {
  let project = '';

  beforeAll(async () => {
    project = newProject(folder, title.replaceAll(' ', '-'));
    await run('npm', ['install', '--prefer-offline', tarball], { cwd: project });
    const types = ['node_modules', '@types'];
    symlinkSync(join(toolchain.folder, ...types), join(project, ...types));
  }, 300_000);

  describe.each(SETTINGS)('moduleResolution $resolution of $files', (settings) => {
    toolchain.it(
      'compiles programs, checks every type, and each receives its first event',
      async () => {
        const { resolution, module, files } = settings;
        const output = join(project, resolution);
        for (const file of files) writeFileSync(join(project, file), APP);
        const args = ['--strict', '--exactOptionalPropertyTypes', '--skipLibCheck', 'false'];
        args.push('--types', 'node', '--target', 'es2022', '--outDir', output);
        args.push('--module', module, '--moduleResolution', resolution, ...options, ...files);
        const compiler = join(toolchain.folder, 'node_modules', 'typescript', 'bin', 'tsc');
        await run(process.execPath, [compiler, ...args], { cwd: project }).catch(
          (error: unknown) => {
            throw new Error((error as { stdout: string }).stdout);
          },
        );
        for (const file of files) {
          const compiled = join(output, file.replace('ts', 'js'));
          const { stdout, stderr } = await run(process.execPath, [compiled], { cwd: project });
          expect(stdout).toMatch(/^exit true dead (string number|undefined undefined)\n$/);
          expect(stderr).toBe('');
        }
      },
    );
  });
});

test('no exported type needs an undeclared package', async () => {
  const text = readFileSync(join(REPOSITORY, 'package.json'), 'utf8');
  const manifest = JSON.parse(text) as Record<'dependencies' | 'peerDependencies', object>;
  const declared = Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies });
  const { stdout } = await run('tar', ['-xzOf', tarball, '--wildcards', '*.d.ts']);
  const imports = /(?:^(?:import|export) [^;]* from |import\()["']([^."'][^"']*)["']/gm;
  const named = [...stdout.matchAll(imports)].map(([, name = '']) =>
    isBuiltin(name) ? '@types/node' : name,
  );
  expect(named).toContain('@types/node');
  expect(declared).toEqual(expect.arrayContaining([...new Set(named)]));
});
