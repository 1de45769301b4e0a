import { execFileSync } from 'node:child_process';

it('leaves a process that has another parent, session, folder and group', () => {
  execFileSync('sh', ['-c', 'cd / && setsid sh -c "sleep 1002 & exit" >/dev/null 2>&1']);
});
