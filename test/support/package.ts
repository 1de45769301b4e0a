import { cpSync, mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { REPOSITORY, run } from './programs';

const { version } = JSON.parse(readFileSync(join(REPOSITORY, 'package.json'), 'utf8')) as {
  version: string;
};

/** What `npm pack` makes of a clone, in a new folder. */
export async function pack(): Promise<{ folder: string; tarball: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'exitwatch-package-'));
  const clone = join(folder, 'clone');
  const { stdout } = await run('git', ['ls-files', '-co', '--exclude-standard'], {
    cwd: REPOSITORY,
  });
  for (const file of stdout.trim().split('\n')) {
    mkdirSync(dirname(join(clone, file)), { recursive: true });
    cpSync(join(REPOSITORY, file), join(clone, file));
  }
  symlinkSync(join(REPOSITORY, 'node_modules'), join(clone, 'node_modules'));
  await run('npm', ['pack', '--pack-destination', folder], { cwd: clone });
  return { folder, tarball: join(folder, `exitwatch-${version}.tgz`) };
}

/** A new project, with nothing in it. */
export function newProject(folder: string, name: string): string {
  const project = join(folder, name);
  mkdirSync(project);
  writeFileSync(join(project, 'package.json'), '{ "private": true }');
  return project;
}
