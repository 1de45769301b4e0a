import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

import { REPOSITORY } from './folders.mjs';

/** The results of the tests in a kernel, and everything that went wrong. */
export class Results {
  release = '';
  version = '';
  doctors = {};
  tests = [];
  #files = [];

  add(message) {
    if (message.type === 'kernel') this.release = message.release;
    else if (message.type === 'doctor') this.doctors[message.user] = message.report;
    else if (message.type === 'test') this.tests.push(message);
    else if (message.type === 'file') this.#files.push(message);
  }

  /** One line per failure, including files that should have run but did not. */
  failures(runs) {
    const failed = this.tests
      .filter(({ status }) => status === 'failed')
      .map(({ user, file, title }) => `${file} (${user}): ${title}`);
    for (const { user, files } of runs) {
      for (const file of files) {
        const result = this.#files.find(
          (other) => other.file === basename(file) && other.user === user,
        );
        if (result === undefined) failed.push(`${file} (${user}): did not run`);
        else if (result.error !== null) failed.push(`${file} (${user}): ${result.error}`);
        else if (result.passed + result.failed + result.skipped === 0)
          failed.push(`${file} (${user}): has no tests`);
      }
      if (!this.tests.some((test) => test.user === user && test.status === 'passed'))
        failed.push(`no test passed (${user})`);
    }
    return failed;
  }

  summary() {
    const count = (wanted) => this.tests.filter(({ status }) => status === wanted).length;
    return `${count('passed')} passed, ${count('failed')} failed, ${count('pending')} skipped`;
  }
}

const FOLDER = join(REPOSITORY, 'build', 'kernels', 'results');

export function saveResults(name, { release, version, doctors, tests }) {
  mkdirSync(FOLDER, { recursive: true });
  const short = tests.map(({ user, file, title, status }) => ({ user, file, title, status }));
  const saved = { release, version, doctors, tests: short };
  writeFileSync(join(FOLDER, `${name}.json`), JSON.stringify(saved));
}

export function savedResults(name) {
  return JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8'));
}
