import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import { REPOSITORY } from './programs';

/** README.md and the pages of docs, by their paths in the repository. */
export const PAGES = [
  'README.md',
  ...readdirSync(join(REPOSITORY, 'docs'))
    .sort()
    .map((name) => `docs/${name}`),
];

/** The pages whose links are checked. */
export const LINKED = [...PAGES, 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md'];

/** A code block of a page. */
export interface Block {
  page: string;
  /** The position on its page, from 1. */
  number: number;
  language: string;
  text: string;
}

export function blocksOf(page: string): Block[] {
  const text = readFileSync(join(REPOSITORY, page), 'utf8');
  return [...text.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(
    ([, language = '', block = ''], index) => ({ page, number: index + 1, language, text: block }),
  );
}

/** The only block of a page that contains this text. */
export function blockWith(page: string, part: string): string {
  const found = blocksOf(page).filter(({ text }) => text.includes(part));
  const [block] = found;
  if (block === undefined || found.length > 1) {
    throw new Error(`${page} has ${found.length} blocks with ${part}`);
  }
  return block.text;
}

/** The commands of a block that shows their output, each with that output. */
export function sessionOf(block: string): { command: string; printed: string[] }[] {
  return block.split(/^\$ /m).flatMap((part) => {
    const [command = '', ...printed] = part.trimEnd().split('\n');
    return command === '' ? [] : [{ command, printed }];
  });
}

/**
 * The only command in the shell blocks of a page whose line contains this text, without its
 * comment.
 */
export function commandWith(page: string, part: string): string {
  const blocks = blocksOf(page).filter(({ language }) => language === 'sh');
  const lines = blocks.flatMap(({ text }) => text.replaceAll('\\\n', '').split('\n'));
  const [line, ...others] = lines.filter((each) => each.includes(part));
  if (line === undefined || others.length > 0)
    throw new Error(`${page} has no single command with ${part}`);
  return line.replace(/\s+# .*$/, '');
}

/**
 * A pattern for a line of the page. Times, pids and ids may differ, and columns may be wider.
 * Everything else must match, including a status.
 */
export function likeOnPage(line: string): RegExp {
  const pattern = line
    .replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
    .replace(/\b[0-9a-f]{12}-\d+-\d+\b/g, '[0-9a-f]{12}-\\d+-t?\\d+')
    .replace(/\d{4}-\d\d-\d\dT[\d:]+\\\.\d{3}Z/g, '\\d{4}-\\d\\d-\\d\\dT[\\d:]+\\.\\d{3}Z')
    .replace(/\d\d:\d\d:\d\d\\\.\d{3}/g, '\\d\\d:\\d\\d:\\d\\d\\.\\d{3}')
    .replace(/\b\d+\\\.\d\ds/g, '\\d+\\.\\d\\ds')
    .replace(/(?<![\\{\d])\b\d{4,}\b/g, '\\d+')
    .replace(/child of (\\d\+) \w+/g, 'child of $1 \\S+')
    .replace(/[\d\\.]+ ([KMG]iB|B)(?= )/g, '[\\d.]+ ([KMG]i)?B')
    .replace(/[\d\\.]+ B(?= written)/g, '[\\d.]+ ([KMG]i)?B')
    .replace(/ < .*$/g, ' < .*')
    .replace(/cgroup \/\S*/g, 'cgroup /\\S*')
    .replace(/ {2,}/g, ' {2,}');
  return new RegExp(`^${pattern}$`);
}
