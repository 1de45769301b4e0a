// npm run release: runs everything that must be done before a version is published, in order. Stops
// before publishing, and prints how to do that.
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const FOLDER = join('build', 'release');

function fail(message) {
  console.error(`release: ${message}`);
  process.exit(1);
}

function step(title, command, ...args) {
  console.log(`\n== ${title}`);
  const env = { ...process.env, CI: '1' };
  const { status } = spawnSync(command, args, { stdio: 'inherit', env });
  if (status !== 0) fail(`${title} failed`);
}

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
const changes = readFileSync('CHANGELOG.md', 'utf8');
const changed = execFileSync('git', ['status', '--porcelain'], { encoding: 'utf8' });
if (changed !== '') fail(`the working tree has uncommitted changes:\n${changed}`);
if (!changes.includes(`\n## ${version}\n`)) fail(`CHANGELOG.md has no section for ${version}`);

step('dependencies', 'npm', 'ci');
step('style, types and package', 'npm', 'run', 'lint');
step('tests', 'npm', 'run', 'test:all');
step('tests with every Node.js, with one binary', 'npm', 'run', 'test:nodes');
mkdirSync(FOLDER, { recursive: true });
step('binaries and tarball', 'npm', 'pack', '--pack-destination', FOLDER);

const tarball = join(FOLDER, `exitwatch-${version}.tgz`);
console.log(`\n${tarball} is ready. To publish it, run:`);
console.log(`  git tag v${version} && git push origin v${version} && npm publish ${tarball}`);
