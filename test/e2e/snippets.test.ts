// Lane: patient

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { identify } from '../../src';

import { MemoryFolder } from '../support/bpffs';
import { forgetAll } from '../support/keeper';
import { PAGES } from '../support/pages';
import { itAsRecorder, itAsRoot } from '../support/privilege';
import { LineProcess } from '../support/programs';
import { armed, until } from '../support/shell-examples';
import { promisesOf, SnippetProject, snippetsOf, type Snippet } from '../support/snippets';
import { until as untilTrue } from '../support/wait';

/** All snippets except configuration files and virtual machines, which have tests of their own. */
const SNIPPETS = PAGES.filter((page) => !/bundlers|vm-/.test(page))
  .flatMap(snippetsOf)
  .filter(({ text }) => !text.includes('qemu'));

let project: SnippetProject;

beforeAll(async () => {
  project = await SnippetProject.make();
}, 400_000);

afterAll(() => {
  project.remove();
});

test('the README has snippets in TypeScript, CommonJS and ESM', () => {
  const kinds = snippetsOf('README.md').map(({ language, text }) =>
    language === 'ts' ? 'ts' : text.includes('require(') ? 'cjs' : 'esm',
  );
  expect(new Set(kinds)).toEqual(new Set(['ts', 'cjs', 'esm']));
});

/** Runs a snippet, which must exit with 0. Returns the lines that it prints. */
async function printedBy(snippet: Snippet, before = '', after = ''): Promise<string[]> {
  const node = project.run(snippet, before, after);
  const lines = await node.rest();
  expect({ code: await node.ended, stderr: node.stderr }).toEqual({ code: 0, stderr: '' });
  return lines.map((line) => line.trimEnd());
}

const hasPromises = (snippet: Snippet) => promisesOf(snippet).length > 0;

/** Its two programs belong together: see below. */
const isAlone = ({ page }: Snippet) => page !== 'docs/services.md';

describe.each(SNIPPETS.filter(hasPromises).filter(isAlone))('$page, block $number', (snippet) => {
  const itMay = /filter|traced/.test(snippet.text) ? itAsRoot : it;

  itMay('prints what the page says', async () => {
    const printed = await printedBy(snippet);
    const promised = promisesOf(snippet);
    expect(printed.slice(0, promised.length)).toEqual(promised);
    const counters = printed.slice(promised.length).join(' ');
    if (snippet.text.includes('monitor.stats()')) {
      expect(counters).toMatch(/^\{ .*delivered: 0, .*source: 'connector', .* \}$/);
    } else {
      expect(counters).toBe('');
    }
  });
});

/** Finds one of the other snippets by a text that only it contains. */
function snippetWith(part: string): Snippet {
  const [snippet, ...more] = SNIPPETS.filter(({ text }) => text.includes(part));
  if (snippet === undefined || more.length > 0)
    throw new Error(`no single snippet contains ${part}`);
  return snippet;
}

/** Ends one process by SIGTERM and one with status 3 while a snippet watches everything. */
async function endTwo() {
  const sleep = new LineProcess('sleep', ['100']);
  sleep.child.kill();
  await sleep.ended;
  const shell = new LineProcess('sh', ['-c', 'exit 3']);
  await shell.ended;
  return { sleep: sleep.pid, shell: shell.pid };
}

const ENDLESS: [string, (pids: { sleep: number; shell: number }) => RegExp[], string][] = [
  [
    'events lost',
    ({ sleep, shell }) => [
      new RegExp(`^sleep \\(${sleep}\\) was killed by SIGTERM$`),
      new RegExp(`^sh \\(${shell}\\) exited with 3$`),
    ],
    '',
  ],
  [
    'console.log(JSON.stringify(event))',
    ({ sleep, shell }) => [
      new RegExp(`^\\{"event":"exit",.*"pid":${sleep},.*"how":"killed",.*"signal":"SIGTERM"`),
      new RegExp(`^\\{"event":"exit",.*"pid":${shell},.*"how":"exited","exitCode":3`),
    ],
    '',
  ],
  [
    "'now by', change.source",
    ({ sleep, shell }) => [
      new RegExp(`^${sleep} sleep killed$`),
      new RegExp(`^${shell} sh exited$`),
    ],
    'by connector \n',
  ],
];

itAsRoot.each(ENDLESS)(
  'the snippet with %s prints which process ends, and how',
  async (part, lines, said) => {
    const node = project.run(snippetWith(part));
    await armed(node);
    const pids = await endTwo();
    for (const line of lines(pids)) await until(node, line);
    node.child.kill();
    await node.ended;
    expect(node.stderr).toBe(said);
  },
);

test('the identified process is written to the file', async () => {
  expect(await printedBy(snippetWith('parent.json'))).toEqual([]);
  const written: unknown = JSON.parse(readFileSync(join(project.path, 'parent.json'), 'utf8'));
  expect(written).toEqual(identify(process.pid));
});

itAsRoot('the sender of a signal is printed', async () => {
  const ancestors = / < node < .+$/;
  const [printed, ...more] = await printedBy(snippetWith('sender.ancestors'));
  expect(printed).toMatch(/^SIGTERM by sh \(\d+\), uid 0 < /);
  expect(printed).toMatch(ancestors);
  expect(more).toEqual([]);
});

itAsRoot('the process that asked a program to end, which exited with 0, is named', async () => {
  const before = `
    import { execFileSync, spawn } from 'node:child_process';
    import { waitForExit } from 'exitwatch';
  `;
  const after = `
    const polite = spawn('sh', ['-c', 'trap "exit 0" TERM; echo; while :; do sleep 0.05; done']);
    await new Promise((resolve) => polite.stdout.once('data', resolve));
    const end = waitForExit(polite.pid ?? 0);
    execFileSync('sh', ['-c', \`kill \${polite.pid}; exit 0\`]);
    const event = await end;
    console.log(event.how, event.exitCode, wasAsked(event)?.signal, wasAsked(event)?.name);
  `;
  const printed = await printedBy(snippetWith('function wasAsked'), before, after);
  expect(printed).toEqual(['exited 0 SIGTERM sh']);
});

itAsRoot(
  'the supervisor restarts a crashed process and leaves one off that was asked to end',
  async () => {
    const server = [
      '#!/bin/sh',
      'echo >>runs',
      'case $(wc -l <runs) in',
      '  1) exit 3 ;;',
      '  2) kill -SEGV $$ ;;',
      // A signal sent right after the start, before the watch begins, has no known sender.
      '  *) trap "exit 0" TERM; sleep 0.5; echo $$; while :; do sleep 0.05; done ;;',
      'esac',
      '',
    ];
    writeFileSync(join(project.path, 'server'), server.join('\n'), { mode: 0o755 });
    const node = project.run(snippetWith("'./server'"));
    const lines = await until(node, /^\d+$/);
    await new LineProcess('sh', ['-c', `kill ${lines.at(-1)}; exit 0`]).ended;
    expect([...lines.slice(0, -1), ...(await node.rest())]).toEqual([
      'crashed (3): starting again',
      'crashed (SIGSEGV): starting again',
      'stopped: SIGTERM from sh',
    ]);
    expect({ code: await node.ended, stderr: node.stderr }).toEqual({ code: 0, stderr: '' });
  },
);

itAsRoot('the reason why a feature is not in use is printed', async () => {
  const env = { ...process.env, EXITWATCH_FILTER: 'cbpf' };
  const node = project.run(snippetWith('traceDowngrade]'), '', '', env);
  await node.ended;
  expect(node.stderr).toMatch(/^cbpf-requested: .+; .+\n$/);
});

itAsRoot('the cost of a wait and of a watch is printed', async () => {
  expect(await printedBy(snippetWith('// costs.mjs'))).toEqual([
    expect.stringMatching(/^the first wait: \d+ ms$/),
    expect.stringMatching(/^a watch: -?\d+ bytes$/),
    expect.stringMatching(/^a watch, in the kernel: -?\d+ bytes$/),
  ]);
});

describe('docs/supervisor.md', () => {
  const inFolder = (snippet: Snippet, folder: string): Snippet => ({
    ...snippet,
    text: snippet.text.replace("'/var/lib/my-supervisor'", JSON.stringify(folder)),
  });

  it('a run that ended while its program was away is told to the next one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'exitwatch-keeper-'));
    const keeps = inFolder(snippetWith("'backup-1'"), folder);
    const first = project.run(keeps, '', "console.log('started');");
    expect(await first.line()).toBe('started');
    first.child.kill('SIGKILL');
    await first.ended;
    const ends = `(?:^|\n)E backup-1 ${3 << 8} `;
    await untilTrue('its end to be on disk', () =>
      new RegExp(ends).test(readFileSync(join(folder, 'keeper', 'runs'), 'utf8')),
    );
    const next = project.run(keeps);
    expect(await next.line()).toBe('backup-1 exited 3 (while we were away)');
    next.child.kill();
    await next.ended;
    await forgetAll(folder);
    rmSync(folder, { recursive: true });
  });

  itAsRoot('a run has the user, the environment and the log that it was given', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'exitwatch-keeper-'));
    const log = join(folder, 'web.log');
    const secrets = join(folder, 'web.secrets');
    writeFileSync(secrets, 'TOKEN=hunter2\n');
    const program = 'console.log(process.getuid(), process.env.PORT, process.env.TOKEN)';
    const text = snippetWith("'web-7'")
      .text.replace("['server.js']", JSON.stringify(['-e', program]))
      .replace("command: 'node'", `command: ${JSON.stringify(process.execPath)}`)
      .replace("'/srv/web'", "'/'")
      .replace("'/etc/web.secrets'", JSON.stringify(secrets))
      .replace("'/var/log/web.log'", JSON.stringify(log));
    const before = `import { Keeper } from 'exitwatch/supervisor';
      const keeper = new Keeper({ stateDir: ${JSON.stringify(folder)} });
      keeper.on('empty', async ({ id }) => {
        for (;;) if (await keeper.forget(id).then(() => true, () => false)) break;
        await keeper.close();
      });
      await keeper.open();`;
    const node = project.run({ ...snippetWith("'web-7'"), text }, before);
    expect(await node.ended).toBe(0);
    expect({ stderr: node.stderr, log: readFileSync(log, 'utf8') }).toEqual({
      ...{ stderr: '', log: '33 8080 hunter2\n' },
    });
    rmSync(folder, { recursive: true });
  });
});

test('docs/services.md: services are kept running by one supervisor after another', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-services-'));
  const inFolder = (part: string): Snippet => {
    const snippet = snippetWith(part);
    return { ...snippet, text: snippet.text.replace("'/var/lib/my-app'", JSON.stringify(folder)) };
  };
  const untilStopped = `
    while (supervisor.service('job').status().phase !== 'ended') {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    await supervisor.close();`;
  expect(await printedBy(inFolder('supervisor.apply('), '', untilStopped)).toEqual([
    'job: 0; restart: false, because it exited with 0, which is a success',
  ]);
  const uses = inFolder("supervisor.service('web')");
  expect(await printedBy(uses)).toEqual(['running', 'true']);
  const start = uses.text.slice(0, uses.text.indexOf('const web'));
  const ends = 'await supervisor.stopAll(); await supervisor.apply([]); await supervisor.close();';
  expect(await printedBy({ ...uses, text: `${start}${ends}` })).toEqual([]);
  rmSync(folder, { recursive: true });
});

describe('docs/memory.md', () => {
  const withRecorder = (snippet: Snippet, stateDir: string, memory: MemoryFolder): Snippet => {
    const options = JSON.stringify(memory.options).slice(1, -1);
    expect(snippet.text).toContain(`stateDir: '${stateDir}'`);
    return { ...snippet, text: snippet.text.replace(`stateDir: '${stateDir}'`, options) };
  };

  itAsRecorder('a restarted program learns who ended what it watched', async () => {
    using memory = new MemoryFolder();
    const snippet = snippetWith('of restored');
    const supervisor = withRecorder(snippet, '/var/lib/my-supervisor', memory);
    const web1 = new LineProcess('sleep', ['100']);
    const watch = `monitor.watch(${web1.pid}, { key: 'web1' }); await monitor.close();`;
    expect(await printedBy(supervisor, '', watch)).toEqual(['recorder']);
    await new LineProcess('sh', ['-c', `kill ${web1.pid}; exit 0`]).ended;
    await web1.ended;
    const end =
      'await Promise.all(restored.map(({ exited }) => exited)); await monitor.close({ forget: true });';
    expect(await printedBy(supervisor, '', end)).toEqual(['recorder', 'web1 killed sh']);
  });

  itAsRecorder('a program stores every exit, also those of its downtime', async () => {
    using memory = new MemoryFolder();
    const store = withRecorder(snippetWith('monitor.commit(event)'), 'state', memory);
    const file = join(project.path, 'exits.jsonl');
    const stored = () => (existsSync(file) ? readFileSync(file, 'utf8') : '');
    expect(await printedBy(store, '', 'await monitor.close();')).toEqual([]);
    const { sleep, shell } = await endTwo();
    const node = project.run(store);
    const expected = [
      expect.stringMatching(new RegExp(`"pid":${sleep},.*"signal":"SIGTERM"`)) as string,
      expect.stringMatching(new RegExp(`"pid":${shell},.*"exitCode":3`)) as string,
    ];
    await untilTrue('both exits in exits.jsonl', () => {
      const lines = stored().split('\n');
      return lines.some((line) => line.includes(`"pid":${shell},`));
    });
    node.child.kill();
    await node.ended;
    expect(stored().split('\n')).toEqual(expect.arrayContaining(expected));
  });
});

test('summary() answers what a supervisor needs to know', async () => {
  const after = `
    const ends = [
      { how: 'exited', exitCode: 0 },
      { how: 'exited', exitCode: 3 },
      { how: 'dumped', signal: 'SIGSEGV', coreDumped: true },
      { how: 'unknown', unknownReason: 'polled' },
    ];
    for (const end of ends) console.log(summary(end as unknown as ExitEvent));
  `;
  expect(await printedBy(snippetWith('function summary'), '', after)).toEqual([
    'done',
    'failed with 3',
    'killed by SIGSEGV, with a core',
    'gone, nobody knows how (polled)',
    // The monitor is closed before the parent ends.
    'not watched any more',
  ]);
});
