// npm run test:asan [-- JEST ARGUMENTS]: runs the tests with an addon and a keeper built with
// AddressSanitizer and UBSan, in a copy of the tree. Leaks of the addon are checked without Node: see
// the running readers in test/package/native-core.test.ts.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';

const COPY = resolve('build', 'asan');

// Tests that read memory of their own, end processes by faults, or measure what a plain Node opens.
const LEFT_OUT = ['native-core', 'readme', 'keeper-flood'];

const tracked = execFileSync('git', ['ls-files', '-z'], { encoding: 'utf8' }).split('\0');
rmSync(COPY, { recursive: true, force: true });
for (const file of tracked.filter((name) => name !== '')) {
  mkdirSync(dirname(join(COPY, file)), { recursive: true });
  cpSync(file, join(COPY, file));
}
symlinkSync(resolve('node_modules'), join(COPY, 'node_modules'));

const run = (command, args, env = {}) => {
  const options = { cwd: COPY, stdio: 'inherit', env: { ...process.env, ...env } };
  const { status } = spawnSync(command, args, options);
  if (status !== 0) process.exit(status ?? 1);
};

run(process.execPath, ['scripts/build.mjs', 'dist'], {
  EXITWATCH_BUILDS: resolve('build', 'builds'),
});
run(process.execPath, ['scripts/build-addon.mjs', '--', '-Dsanitize=1']);
const sanitized = ['-g', '-fsanitize=address,undefined', '-fno-sanitize-recover=all'];
run(process.execPath, ['scripts/build-keeper.mjs', ...sanitized]);
const library = (name) =>
  execFileSync('cc', [`-print-file-name=${name}`], { encoding: 'utf8' }).trim();
const filter = [
  ...process.argv.slice(2),
  `--testPathIgnorePatterns=${LEFT_OUT.map((name) => `/${name}`).join('|')}`,
];
run(process.execPath, ['node_modules/jest/bin/jest.js', ...filter], {
  LD_PRELOAD: `${library('libasan.so')}:${library('libubsan.so')}`,
  ASAN_OPTIONS:
    'detect_leaks=0:verify_asan_link_order=0:handle_segv=0:handle_abort=0:allow_user_segv_handler=1',
  UBSAN_OPTIONS: 'halt_on_error=1:print_stacktrace=1',
});
