// Ends services in many ways, under a real systemd, and tells what exitwatch and the logs say of each.
// A line of JSON for each; the last one is told during the shutdown, by shutdown.sh.
const { spawnSync } = require('node:child_process');
const {
  copyFileSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
  writeSync,
} = require('node:fs');

const port = openSync('/dev/ttyS1', 'w');

function tell(message) {
  const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let at = 0; at < bytes.length;) at += writeSync(port, bytes, at);
}

function sh(command, env = {}) {
  const { stdout, stderr, status } = spawnSync('sh', ['-c', command], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  });
  return { stdout, stderr, status };
}

function must(command) {
  const { stdout, stderr, status } = sh(command);
  if (status !== 0) throw new Error(`${command} ended with ${status}: ${stderr}`);
  return stdout.trimEnd();
}

function until(what, isDone) {
  const deadline = Date.now() + 120_000;
  for (;;) {
    const found = isDone();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`${what} does not come`);
    spawnSync('sleep', ['0.2']);
  }
}

const lines = (text) => text.trimEnd().split('\n');
const mainPid = (unit) => Number(must(`systemctl show --value --property=MainPID ${unit}`));
const isEnded = (unit) =>
  ['inactive', 'failed'].includes(sh(`systemctl is-active ${unit}`).stdout.trim());

/** A service whose process is named like it. */
function addService(name, { program = '/usr/bin/sleep', args = '1000', more = '' } = {}) {
  copyFileSync(program, `/srv/${name}`);
  addUnit(name, `/srv/${name} ${args}`, more);
}

function addUnit(name, command, more = '') {
  const text = `[Unit]\nDescription=${name}\n[Service]\nExecStart=${command}\n${more}\n`;
  writeFileSync(`/etc/systemd/system/${name}.service`, text);
}

function addScript(name, text) {
  writeFileSync(`/srv/${name}`, `#!/bin/bash\n${text}\n`, { mode: 0o755 });
}

const SHELL = { program: '/usr/bin/bash' };

/** How services end: what is done to each, and what is asked then. */
const WAYS = [
  {
    name: 'scripted',
    service: { more: 'User=deploy' },
    act: 'setpriv --reuid=1000 --regid=1000 --clear-groups /srv/deploy.sh scripted',
  },
  { name: 'restarted', act: 'systemctl restart restarted' },
  { name: 'hung-up', act: 'systemctl kill --signal=HUP hung-up' },
  {
    name: 'hungry',
    service: {
      ...SHELL,
      args: String.raw`-c "a=$$(tr '\\0' x < /dev/zero)"`,
      more: 'MemoryMax=48M\nMemorySwapMax=0',
    },
  },
  {
    name: 'faulty',
    service: { ...SHELL, args: '-c "f() { f; }; f"', more: 'LimitSTACK=256K' },
  },
  { name: 'leaving', service: { ...SHELL, args: '-c "exit 3"' } },
  {
    name: 'recovered',
    service: { ...SHELL, args: '-c "while :; do /srv/hung-up 1; done"', more: 'Restart=always' },
    act: 'systemctl kill --signal=KILL recovered; sleep 4',
  },
  { name: 'victim', act: 'systemctl start killer' },
  {
    name: 'contained',
    unit: ['/usr/bin/runc run --bundle /srv/bundle contained', 'KillMode=process'],
    ready: 'grep -qx sleep /proc/[0-9]*/comm',
    act: 'runc kill contained TERM; sleep 2; runc kill contained KILL',
    ask: 'sleep',
  },
  {
    name: 'crowded',
    unit: ['/usr/bin/runc run --bundle /srv/crowd crowded', 'KillMode=process'],
    ready: 'grep -qx worker /proc/[0-9]*/comm',
    act: 'runc exec crowded /bin/kill -9 -1',
    ask: 'worker',
  },
];

function addAll() {
  writeFileSync(
    '/usr/local/bin/exitwatch',
    '#!/bin/sh\nexec /usr/bin/node /exitwatch/dist/cli/main.js "$@"\n',
    { mode: 0o755 },
  );
  addScript('deploy.sh', 'kill "$(cat "/run/$1/pid" 2>/dev/null || pidof "$1")"\nexit 0');
  for (const { name, unit, service } of WAYS) {
    if (unit === undefined) addService(name, service);
    else addUnit(name, ...unit);
  }
  addUnit('killer', '/bin/sh -c "kill -KILL $$(pidof victim)"', 'Type=oneshot');
  addService('last');
  addScenes();
  bundles();
  must('systemctl daemon-reload');
}

/** A server of Node.js is ended: what those see who watch all, or wait for it. */
const SCENES = [
  {
    name: 'deploy',
    act: 'setpriv --reuid=1000 --regid=1000 --clear-groups /srv/deploy.sh web',
  },
  { name: 'restart', act: 'systemctl restart web' },
  {
    name: 'container',
    service: 'boxed',
    filter: '--cgroup /system.slice/boxed',
    act: 'runc kill boxed KILL',
  },
  { name: 'memory', service: 'growing', act: 'kill -USR2 $(cat /run/web/pid)' },
];

const SERVER = `
const held = [];
process.on('SIGUSR2', () => {
  for (;;) held.push(Buffer.alloc(1024 * 1024, 1));
});
const server = require('node:http').createServer().listen('/tmp/web.sock');
process.once('SIGTERM', () => {
  server.close();
  setTimeout(() => process.kill(process.pid, 'SIGTERM'), 500); // for requests that are under way
});
require('node:fs').writeFileSync('/run/web/pid', String(process.pid));
`;

const WIDTHS = [80, 160];

function addScenes() {
  writeFileSync('/srv/server.js', SERVER);
  const more = 'RuntimeDirectory=web\nExecStartPre=-/bin/rm -f /tmp/web.sock';
  addUnit('web', '/usr/bin/node /srv/server.js', `User=deploy\n${more}`);
  addUnit('growing', '/usr/bin/node /srv/server.js', `${more}\nMemoryMax=96M\nMemorySwapMax=0`);
  addUnit('boxed', '/usr/bin/runc run --bundle /srv/boxed boxed', more);
}

/** How many programs of exitwatch have the trace at work. */
function armed() {
  const count = 'for p in $(pidof node); do ls -l /proc/$p/fd | grep -q bpf && echo $p; done';
  // The recorder's own service is one of them.
  return lines(sh(count).stdout).length - 1;
}

function tellScene({ name, service = 'web', filter = `--unit ${service}.service`, act }) {
  must(`rm -f /run/web/pid; systemctl start ${service}`);
  until(`${service} to be there`, () => sh('test -s /run/web/pid').status === 0);
  // A container has pids of its own.
  const pid = sh('runc state boxed').status === 0 ? stateOf('boxed') : mainPid(service);
  const watchers = WIDTHS.flatMap((columns) => [
    { columns, command: `exitwatch watch --command-lines ${filter} --count 1` },
    { columns, command: `exitwatch wait --command-lines ${pid}` },
  ]);
  watchers.forEach(({ columns, command }, i) => {
    const inside = `stty cols ${columns} rows 50; NO_COLOR=1 ${command}; echo END`;
    must(`script -qec "${inside}" /dev/null >/tmp/seen.${i} 2>&1 </dev/null &`);
  });
  until('all to watch', () => armed() >= watchers.length);
  spawnSync('sleep', ['5']);
  must(act);
  const seen = watchers.map(({ columns, command }, i) => {
    const text = until(`what ${command} says`, () => {
      const { stdout } = sh(`cat /tmp/seen.${i}`);
      return /^END/m.test(stdout) ? stdout : null;
    });
    return { columns, command, lines: lines(text.replaceAll('\r', '')) };
  });
  tell({ type: 'scene', name, act, seen });
  sh(`systemctl stop ${service}`);
}

function stateOf(container) {
  return JSON.parse(must(`runc state ${container}`)).pid;
}

function bundles() {
  must('cp -a /srv/bundle /srv/crowd');
  const config = JSON.parse(must('cat /srv/bundle/config.json'));
  const write = (folder, args) => {
    config.process.terminal = false;
    config.process.args = args;
    writeFileSync(`/srv/${folder}/config.json`, JSON.stringify(config));
  };
  write('bundle', ['/bin/sleep', '1000']);
  writeFileSync('/srv/crowd/rootfs/bin/worker', '#!/bin/sh\nsleep 1000\n', { mode: 0o755 });
  must('cp -a /srv/bundle /srv/boxed');
  // With the programs of this machine.
  const bind = (path) => ({
    destination: path,
    source: path,
    type: 'none',
    options: ['rbind', 'rw'],
  });
  write('crowd', ['/bin/sh', '-c', '/bin/worker & wait; sleep 1000']);
  config.mounts.push(...['/usr', '/srv', '/run/web'].map(bind));
  config.root.readonly = false;
  write('boxed', ['/usr/bin/node', '/srv/server.js']);
  for (const name of ['lib', 'lib64']) must(`ln -s usr/${name} /srv/boxed/rootfs/${name}`);
}

function tellWay({ name, act, ready, ask = `${name}.service` }) {
  must(`systemctl start ${name}`);
  const before = mainPid(`${name}.service`);
  const isReady = () =>
    ready === undefined
      ? sh(`cat /proc/${before}/comm`).stdout.trim() !== `(${name})`
      : sh(ready).status === 0;
  if (act !== undefined) {
    until(`${name} to run`, () => isReady());
    must(act);
  }
  until(`the end of ${name}`, () => isEnded(name) || mainPid(name) !== before || ask === 'worker');
  const why = until(`what why says of ${ask}`, () => {
    const { stdout, status } = sh(`exitwatch why ${ask}`);
    return status === 0 ? lines(stdout) : null;
  });
  const journalctl = lines(must(`journalctl --no-pager --output=cat --unit=${name}.service`));
  tell({ type: 'way', name, act: act ?? null, why, journalctl });
}

/** Some of them, if the command line of the kernel names some. */
function isWanted({ name }) {
  const [, names] = /\bstories=(\S+)/.exec(readFileSync('/proc/cmdline', 'latin1')) ?? [];
  return names === undefined || names.split(',').includes(name);
}

try {
  // All pids have four digits, so that tables are cut at the same places.
  writeFileSync('/proc/sys/kernel/ns_last_pid', '3000');
  mkdirSync('/usr/local/bin', { recursive: true });
  mkdirSync('/var/log/journal', { recursive: true });
  addAll();
  tell({ type: 'installed', said: lines(must('exitwatch record --install --command-lines')) });
  for (const way of WAYS.filter(isWanted)) tellWay(way);
  for (const scene of SCENES.filter(isWanted)) tellScene(scene);
  must('systemctl start last');
} catch (error) {
  tell({ type: 'failed', error: String(error.stack) });
}
must('systemctl --no-block poweroff');
