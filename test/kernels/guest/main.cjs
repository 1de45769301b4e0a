// Does the job of this guest, and tells what comes of it, in lines of JSON, on the port that is given.
const { spawn } = require('node:child_process');
const { openSync, readFileSync, writeSync } = require('node:fs');
const { release } = require('node:os');

const port = openSync(process.argv[2], 'w');

function tell(message) {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let at = 0; at < bytes.length;) at += writeSync(port, bytes, at);
}

function run(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: '/exitwatch', stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => tell({ type: 'output', text }));
    child.once('close', (code, signal) => resolve(code ?? signal));
  });
}

async function main() {
  tell({ type: 'kernel', release: release() });
  const { command } = JSON.parse(readFileSync('/guest/job.json', 'utf8'));
  tell({ type: 'end', code: await run('sh', ['-c', command]) });
}

void main();
