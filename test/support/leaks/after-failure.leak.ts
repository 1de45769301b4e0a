import { spawn } from 'node:child_process';

it('fails and leaves a process', () => {
  spawn('sleep', ['1003'], { stdio: 'ignore' }).unref();
  throw new Error('this is why it fails');
});
