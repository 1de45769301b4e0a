// Lane: unit

import {
  appendFileSync,
  copyFileSync,
  mkdtempSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WriteStream } from 'node:tty';

import { LogTail } from '../../src/cli/output/log-tail';

import { until } from '../support/wait';

/** A log file, and what follows it. */
class Log {
  readonly folder = mkdtempSync(join(tmpdir(), 'exitwatch-tail-'));
  readonly file = join(this.folder, 'log');
  readonly out = new PassThrough();
  readonly tail: LogTail;
  printed = '';
  losses = 0;

  constructor(isTerminal = false) {
    this.out.on('data', (chunk: Buffer) => (this.printed += chunk.toString()));
    const stream = Object.assign(this.out, { isTTY: isTerminal }) as unknown as WriteStream;
    this.tail = new LogTail(this.file, stream, () => this.losses++);
  }

  rotate(keep: number): void {
    const name = (number: number) => (number === 0 ? this.file : `${this.file}.${number}`);
    rmSync(name(keep), { force: true });
    for (let number = keep - 1; number >= 0; number--) {
      try {
        renameSync(name(number), name(number + 1));
      } catch {
        // There is none of that number yet.
      }
    }
  }

  async shows(text: string): Promise<void> {
    await until(
      `${JSON.stringify(text)} to be printed`,
      () => this.printed === text,
      () => JSON.stringify(this.printed),
    );
  }

  [Symbol.dispose](): void {
    this.tail.close();
    rmSync(this.folder, { recursive: true });
  }
}

test('the last lines are printed, also of a long file', async () => {
  using log = new Log();
  await log.tail.printLast(2);
  expect(log.printed).toBe(''); // there is none yet
  writeFileSync(log.file, `${'x'.repeat(200_000)}\none\n\ntwo`);
  await log.tail.printLast(3);
  expect(log.printed).toBe('one\n\ntwo');
});

test('the last lines are printed, also of files that were moved away', async () => {
  using log = new Log();
  writeFileSync(`${log.file}.2`, 'one\ntwo\n');
  writeFileSync(`${log.file}.1`, 'three\n');
  writeFileSync(log.file, 'four\nfive\n');
  await log.tail.printLast(4);
  expect(log.printed).toBe('two\nthree\nfour\nfive\n');
});

test('what is rotated by a copy is followed, and a file that is cut', async () => {
  using log = new Log();
  writeFileSync(`${log.file}.1`, 'older\n'.repeat(10));
  writeFileSync(log.file, 'the first line\n');
  await sleep(50); // a file system's clock is coarse
  await log.tail.printLast(1);
  log.tail.follow();
  await log.shows('the first line\n');
  writeFileSync(log.file, 'second\n');
  await log.shows('the first line\nsecond\n');
  appendFileSync(log.file, 'third\n');
  rmSync(`${log.file}.1`);
  copyFileSync(log.file, `${log.file}.1`);
  writeFileSync(log.file, '4\n');
  await log.shows('the first line\nsecond\nthird\n4\n');
});

test('a log is followed over all rotations since the last look', async () => {
  using log = new Log();
  writeFileSync(log.file, 'a\n');
  await log.tail.printLast(1);
  for (const text of ['b', 'c', 'd']) {
    appendFileSync(log.file, `${text}1\n`);
    log.rotate(5);
    writeFileSync(log.file, `${text}2\n`);
  }
  log.tail.follow();
  await log.shows('a\nb1\nb2\nc1\nc2\nd1\nd2\n');
  expect(log.losses).toBe(0);
});

test('lines that were removed before they were read are told to be missing', async () => {
  using log = new Log();
  writeFileSync(log.file, 'a\n');
  await log.tail.printLast(1);
  for (const text of ['b\n', 'c\n']) {
    log.rotate(1);
    writeFileSync(log.file, text);
  }
  log.tail.follow();
  await log.shows('a\nc\n');
  expect(log.losses).toBe(1);
});

test('a terminal is shown colors, and obeys nothing else', async () => {
  using log = new Log(true);
  writeFileSync(log.file, '\u001b[31mred\u001b[0m\t\u001b]0;title\u0007\u009b2J\r\n');
  await log.tail.printLast(1);
  expect(log.printed).toBe('\u001b[31mred\u001b[0m\t\ufffd]0;title\ufffd\ufffd2J\ufffd\n');
});
