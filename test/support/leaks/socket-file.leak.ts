import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { tmpdir } from 'node:os';

it('leaves the path of a socket', () => {
  const script = 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])';
  execFileSync('python3', ['-c', script, join(tmpdir(), 'left')]);
});
