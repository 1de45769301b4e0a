import { spawn } from 'node:child_process';

it('leaves a process', () => {
  spawn('sleep', ['1001'], { stdio: 'ignore' }).unref();
});
