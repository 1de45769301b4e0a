// Lane: patient

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import Ajv, { type ValidateFunction } from 'ajv/dist/2020';

import { checkConfig, ConfigFault } from '../../src/supervise/config/check-config';
import { placesIn } from '../../src/supervise/config/json-places';
import { loadConfig, parseConfig } from '../../src/supervise/config/load-config';
import { machineFolders } from '../../src/supervise/machines/machine-spec';
import type { ExitwatchError } from '../../src';

import { call } from '../support/command';
import { REPOSITORY } from '../support/programs';
import { randomFrom } from '../support/random';

const DEFAULTS = {
  ...{ folder: '/srv', logs: '/var/logs', exitwatch: ['node', 'main.js'] },
  machines: machineFolders('/state'),
};

const parse = (text: string) => parseConfig(text, '/srv/services.json', DEFAULTS);

const fault = (text: string) => {
  try {
    parse(text);
  } catch (error) {
    expect((error as ExitwatchError).code).toBe('ERR_EXITWATCH_CONFIG');
    return (error as ExitwatchError).message.replace('/srv/services.json', '');
  }
  return null;
};

const service = (...lines: string[]) =>
  `{ "services": [\n{ "name": "a", "command": "x" },\n{ "name": "b",\n${lines.join(',\n')}\n} ] }`;

describe('a configuration', () => {
  let folder: string;
  beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'exitwatch-config-'))));
  afterAll(() => {
    rmSync(folder, { recursive: true });
  });
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  it('has its paths relative to its folder, and output that is kept', () => {
    const text = service(
      '"command": "./x", "cwd": "sub", "envFile": "env", "logs": {"stdout": "o"}',
    );
    const { services } = parse(text);
    expect(services).toEqual([
      { name: 'a', command: 'x', cwd: '/srv', logs: { file: '/var/logs/a.log', maxBytes: 1e7 } },
      {
        ...{ name: 'b', command: './x', cwd: '/srv/sub', envFile: '/srv/env' },
        logs: { stdout: '/srv/o' },
      },
    ]);
    expect(parse('{ "services": [{ "name": "a", "command": "x", "logs": {} }] }').services).toEqual(
      [{ name: 'a', command: 'x', cwd: '/srv', logs: {} }],
    );
  });

  it('may have one main service, which runs once unless it says otherwise', () => {
    const { services, main } = parse(service('"command": "x"', '"main": true'));
    expect(main).toBe('b');
    expect(services[1]).toMatchObject({ restart: 'never' });
    expect(services[1]).not.toHaveProperty('main');
    const text = service('"command": "x", "main": true, "restart": "on-failure"');
    expect(parse(text).services[1]).toMatchObject({ restart: 'on-failure' });
    const two =
      '{"services": [{"name":"a","command":"x","main":true},\n{"name":"b","command":"x","main":true}]}';
    expect(fault(two)).toBe(':2: services[1].main: main is true of "a" already');
  });

  it.each<[string, string]>([
    [
      '"command": "x",\n"restart": "sometimes"',
      ':5: services[1].restart: service "b": restart must',
    ],
    [
      '"command": "x",\n"stop": {\n"graceMs": -1 }',
      ':6: services[1].stop.graceMs: service "b": stop',
    ],
    ['"command": "x",\n"stopp": 1', ':5: services[1].stopp: unknown option "stopp"'],
    ['"command": "x",\n"ready": { "tcp":\n{ "prot": 1 } }', ':6: services[1].ready.tcp.prot'],
    ['"command": ""', ':4: services[1].command: service "b": command must be a path or a name'],
    ['"command": "x",\n"env": {\n"A": 1 }', ':6: services[1].env.A: service "b": env.A must be'],
    ['"command": "x",\n"extraEnv": {\n"A": 1 }', ':6: services[1].extraEnv.A'],
    ['"command": "x",\n"after": ["c"]', ':5: services[1].after: service "b": after names "c"'],
    [
      '"command": "x",\n"after": ["b"]',
      ':5: services[1].after: service "b": after goes in a circle',
    ],
    ['"command": "x",\n"main": 1', ':5: services[1].main: main is true or false'],
    ['"command": "x",\n"kind": "jail"', ':5: services[1].kind: kind must be "vm"'],
    [
      '"command": "x",\n"kind": "vm",\n"args": ["-daemonize"]',
      ':6: services[1].args: args must not',
    ],
    [
      '"command": "x",\n"kind": "vm",\n"user": "me"',
      ':6: services[1].user: user is not for a machine',
    ],
    [
      '"command": "x",\n"kind": "vm",\n"ready": {\n"notify": true }',
      ':7: services[1].ready.notify: ready.notify is not for a machine',
    ],
    ['"command": "x",\n"command": "y"', ':5: services[1].command is there twice'],
    ['"command": "x",', ':5: it is no JSON: a key is expected in column 1'],
    ['"command": "x" "y"', ':4: it is no JSON: , or } is expected in column 16'],
    ['"command": \'x\'', ':4: it is no JSON: a value is expected in column 12'],
    ['"command": 01', ':4: it is no JSON: , or } is expected in column 13'],
  ])('names the line and the key: %s', (lines, message) => {
    expect(fault(service(lines))).toContain(message);
  });

  it.each([
    ['', ':1: it is no JSON: a value is expected in column 1'],
    ['{', ':1: it is no JSON: a key or } is expected in column 2'],
    ['{} {}', ':1: it is no JSON: the end is expected in column 4'],
    ['"\u0001"', ':1: it is no JSON: a value is expected in column 1'],
    ['null', ':1: a configuration must be an object'],
    ['{}', ':1: services must be an array'],
    ['{"services": {}}', ':1: services: services must be an array'],
    ['{"services": [1]}', ':1: services[0]: a service must be an object'],
    ['{"services": [], "x": 1}', ':1: x: unknown option "x"'],
    ['[{"name":"a","command":"x"},{"name":"a","command":"x"}]', 'there are two services "a"'],
    [
      `{"services": [{"name":"a","command":"x","env":${'['.repeat(20_000)}${']'.repeat(20_000)}}]}`,
      '',
    ],
  ])('says what is wrong with %s'.slice(0, 60), (text, message) => {
    expect(fault(text)).toContain(message);
  });

  it('finds the same faults as JSON.parse(), and the places of all values', () => {
    const seed = Number(process.env['EXITWATCH_SEED'] ?? Date.now());
    const random = randomFrom(seed);
    const text = readFileSync(join(REPOSITORY, 'schemas', 'services.json'), 'utf8');
    const alphabet = [
      '"',
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '\\',
      '1',
      'e',
      '.',
      '-',
      'true',
      '\n',
      ' ',
    ];
    for (let round = 0; round < 500; round++) {
      const at = random(text.length);
      const end = at + random(3);
      const spoilt =
        text.slice(0, at) + (alphabet[random(alphabet.length)] ?? '') + text.slice(end);
      let isJson = true;
      try {
        JSON.parse(spoilt);
      } catch {
        isJson = false;
      }
      expect({ seed, round, isJson: placesIn(spoilt).fault === null }).toEqual({
        seed,
        round,
        isJson,
      });
    }
    const { lines, twice } = placesIn('{\n"a": [1,\n{"b": null}],\n"c": "d"}');
    expect(Object.fromEntries(lines)).toEqual({
      ...{ '': 1, a: 2, 'a[0]': 2, 'a[1]': 3, 'a[1].b': 3, c: 4 },
    });
    expect(twice).toBeNull();
  });

  it('is valid for its schema in each example', () => {
    const page = readFileSync(join(REPOSITORY, 'docs', 'supervise.md'), 'utf8');
    const blocks = [
      ...page.matchAll(/^(?:```json|cat .*)\n(\{\n {2}"services":[^]*?)^(?:```|END)$/gm),
    ];
    expect(blocks.length).toBeGreaterThan(1);
    for (const [, text = ''] of blocks) {
      expect(parse(text).services).not.toEqual([]);
      expect(compile()(JSON.parse(text))).toBe(true);
    }
  });

  it.each(['service', 'machine'])('is checked as its schema says: a %s', (kind) => {
    const everything = kind === 'machine' ? MACHINE : EVERYTHING;
    const isValid = compile();
    const seed = Number(process.env['EXITWATCH_SEED'] ?? Date.now());
    const random = randomFrom(seed);
    const pick = <T>(list: readonly T[]) => list[random(list.length)] as T;
    const values = [
      null,
      true,
      false,
      0,
      1,
      -1,
      1.5,
      2 ** 31,
      '',
      'x',
      [],
      {},
      ['x'],
      { x: 1 },
      'SIGHUP',
    ];
    let accepted = 0;
    for (let round = 0; round < 3000; round++) {
      const given = structuredClone(everything) as Record<string, unknown>;
      spoil(given, pick, values, random);
      const config = { services: [given] };
      let message: string | null = null;
      try {
        checkConfig(config, DEFAULTS);
      } catch (error) {
        if (!(error instanceof ConfigFault)) throw error;
        ({ message } = error);
      }
      const isKnown =
        message === null ||
        !/unknown user|unknown group|has no group|is no service|in a circle/.test(message);
      const isOurs = isValid(config);
      if (isKnown && isOurs !== (message === null)) {
        throw new Error(
          `seed ${seed}: ${JSON.stringify(given)}\nours: ${message}\nschema: ${JSON.stringify(isValid.errors)}`,
        );
      }
      if (isOurs) accepted++;
    }
    expect(accepted).toBeGreaterThan(100);
  });

  it('may be a module of either kind, or a function', async () => {
    const list = '[{ name: "a", command: "x" }, { name: "b", command: "y" }]';
    const files = [
      write('a.mjs', `console.log("noise"); export default { services: ${list} };`),
      write('a.cjs', `module.exports = async () => (${list});`),
    ];
    for (const file of files) {
      const { code, lines } = await call('supervise', file, '--check');
      expect({ code, lines }).toEqual({ code: 0, lines: [`${file}: 2 services`] });
    }
  });

  it.each([
    ['export const x = 1;', 'it has no default export'],
    [
      'export default { services: [{ name: "a", command: () => 1 }] };',
      'services[0].command must be plain JSON, not function',
    ],
    [
      'export default { services: [{ name: "a", command: "x", stop: { graceMs: NaN } }] };',
      'services[0].stop.graceMs is NaN',
    ],
    [
      'export default [{ name: "a", command: "x", restart: "no" }];',
      'services[0].restart: service "a": restart must be',
    ],
    ['const a = { services: [] }; a.services.push(a); export default a;', 'contains itself'],
    ['\n\nthrow new Error("oh");', 'wrong.mjs:3:7'],
    ['export default {', 'SyntaxError'],
    ['process.exit(3);', 'it ended with 3'],
    ['process.kill(process.pid, "SIGKILL");', 'it ended with SIGKILL'],
  ])('names what is wrong with a module: %s', async (text, message) => {
    const file = write('wrong.mjs', text);
    const { code, stderr } = await call('supervise', file, '--check');
    expect(code).toBe(2);
    expect(stderr).toContain(file);
    expect(stderr).toContain(message);
  });

  it('names a log that is no regular file', async () => {
    const file = write('log.json', service('"command": "x"', '"logs": { "stdout": "/dev/null" }'));
    await expect(loadConfig(file, '/state')).rejects.toThrow(
      `${file}: service "b": logs.stdout must be a regular file, and /dev/null is no regular file`,
    );
  });

  it('that is missing is an error', async () => {
    const file = join(folder, 'missing.json');
    await expect(loadConfig(file, '/state')).rejects.toThrow(`${file}: no such file or directory`);
  });
});

/** Each option with a valid value. */
const EVERYTHING = {
  ...{ name: 'a', command: 'x', args: ['y'], env: { A: 'b' }, extraEnv: { C: 'd' }, envFile: 'e' },
  ...{ cwd: 'c', umask: 18, openFiles: 64, allowRoot: true, cgroup: null, pidfile: '/p' },
  ...{ main: false, after: [] },
  logs: { stdout: 'o', stderr: 'e', maxBytes: 1, keep: 2 },
  ...{ restart: 'always', successExitCodes: [0, 1], onUnknown: 'stay' },
  askedBy: [{ uid: 1 }, { unit: 'u' }, { ancestor: 'a' }],
  backoff: { freeAttempts: 1, firstMs: 2, capMs: 3, healthyMs: 4, jitter: 0.5, giveUpAfter: 6 },
  stop: {
    signal: 'SIGINT',
    ask: 'main',
    graceMs: 1,
    control: { command: 'x', args: ['y'], timeoutMs: 2 },
  },
  ready: { exec: { command: 'x' }, everyMs: 1, withinMs: 2 },
  watchdog: { withinMs: 3 },
};

/** The same of a machine. */
const MACHINE = {
  ...{ name: 'a', kind: 'vm', command: 'x', args: ['y'], env: { A: 'b' }, extraEnv: { C: 'd' } },
  ...{ envFile: 'e', cwd: 'c', umask: 18, openFiles: 64, allowRoot: true, cgroup: null },
  ...{ main: false, after: [] },
  ...{ logs: EVERYTHING.logs, restart: 'never', onUnknown: 'stay', backoff: EVERYTHING.backoff },
  ...{ stop: { powerdownMs: 1, graceMs: 1 }, ready: EVERYTHING.ready },
};

function compile(): ValidateFunction {
  const text = readFileSync(join(REPOSITORY, 'schemas', 'services.json'), 'utf8');
  return new Ajv({ strict: false }).compile(JSON.parse(text) as object);
}

/** Changes one or two values, somewhere. */
function spoil(
  given: Record<string, unknown>,
  pick: <T>(list: readonly T[]) => T,
  values: readonly unknown[],
  random: (most: number) => number,
): void {
  for (let times = random(3); times > 0; times--) {
    let at = given;
    let key = pick(Object.keys(at));
    for (let depth = random(3); depth > 0; depth--) {
      const inner = at[key];
      if (typeof inner !== 'object' || inner === null) break;
      const keys = Object.keys(inner);
      if (keys.length === 0) break;
      at = inner as Record<string, unknown>;
      key = pick(keys);
    }
    const action = random(4);
    if (action === 0 && Array.isArray(at)) at.splice(Number(key), 1);
    else if (action === 0) Reflect.deleteProperty(at, key);
    else if (action === 1 && !Array.isArray(at)) at['unknown'] = 1;
    else at[key] = pick(values);
  }
}
