// npm run test:nodes [-- JEST ARGUMENTS]: runs tests with every supported Node, using one binary of
// the addon for all. Without arguments, runs the tests of its lifecycle. EXITWATCH_ROUNDS repeats
// them.
import { execFileSync, spawnSync } from 'node:child_process';
import { join } from 'node:path';

const VERSIONS = ['20', '22', '24', '26'];

const args = process.argv.slice(2);
const tests = args.length > 0 ? args : ['test/native/lifecycle.test.ts'];

for (const version of VERSIONS) {
  const folder = join('build', 'nodes', version);
  const install = ['install', '--silent', '--no-save', '--prefix', folder, `node@${version}`];
  execFileSync('npm', install, { stdio: 'inherit' });
  const node = join(folder, 'node_modules', 'node', 'bin', 'node');
  console.log(execFileSync(node, ['--version'], { encoding: 'utf8' }).trim());
  const { status } = spawnSync(node, ['node_modules/jest/bin/jest.js', ...tests], {
    stdio: 'inherit',
  });
  if (status !== 0) process.exit(status ?? 1);
}
