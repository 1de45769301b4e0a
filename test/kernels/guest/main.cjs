// Runs the job of this guest, and reports its results as lines of JSON on the given port.
const { execFileSync, fork, spawn } = require('node:child_process');
const { openSync, readFileSync, writeSync } = require('node:fs');
const { release } = require('node:os');

const CWD = '/exitwatch';
const USERS = { root: {}, nobody: { uid: 65534, gid: 65534 } };

const port = openSync(process.argv[2], 'w');

function tell(message) {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let at = 0; at < bytes.length;) at += writeSync(port, bytes, at);
}

/**
 * Forwards the child's output. Resolves with its exit code or signal when all output is forwarded.
 */
function follow(child) {
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text) => tell({ type: 'output', text }));
  return new Promise((resolve) => {
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
}

/** doctor exits with 1 if something could be better, which is not a failure here. */
function examine(user) {
  const command = 'node dist/cli/main.js doctor --json || true';
  const options = { ...USERS[user], cwd: CWD, encoding: 'utf8' };
  tell({ type: 'doctor', user, report: JSON.parse(execFileSync('sh', ['-c', command], options)) });
}

function runTests({ user, files, pattern, env }) {
  const jest = fork(
    'node_modules/jest/bin/jest.js',
    [
      ...['--config', '/guest/jest.config.cjs', '--runInBand'],
      ...(pattern === undefined ? [] : ['--testNamePattern', pattern]),
      ...files.map((file) => `/${file}\\.test\\.js$`),
    ],
    {
      ...{ ...USERS[user], cwd: CWD, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] },
      env: { ...process.env, ...env },
    },
  );
  jest.on('message', (message) => tell({ ...message, user }));
  return follow(jest);
}

async function main() {
  tell({ type: 'kernel', release: release() });
  const { command, runs = [] } = JSON.parse(readFileSync('/guest/job.json', 'utf8'));
  let code = 0;
  if (command !== undefined) code = await follow(spawn('sh', ['-c', command], { cwd: CWD }));
  for (const run of runs) {
    examine(run.user);
    await runTests(run);
  }
  tell({ type: 'end', code });
}

void main();
