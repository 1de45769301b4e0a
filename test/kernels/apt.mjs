// Packages of any Debian suite, fetched by apt into a folder of its own. The host's lists stay as
// they are.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { cacheFolder } from './folders.mjs';
import { DEBIAN_ARCH } from './kernels.mjs';

const KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';

export class AptRoot {
  #options;

  /** `name` is the name of the folder, and `suites` come from KERNELS. */
  constructor(name, { arch, suites }) {
    const root = cacheFolder('apt', name);
    for (const folder of ['lists/partial', 'cache/archives/partial', 'etc/preferences.d'])
      mkdirSync(join(root, folder), { recursive: true });
    const sources = join(root, 'etc', 'sources.list');
    writeFileSync(join(root, 'status'), '');
    writeFileSync(
      sources,
      suites.map((suite) => `deb [signed-by=${KEYS}] ${suite} main\n`).join(''),
    );
    this.#options = [
      ...[`Dir::Etc=${root}/etc`, `Dir::Etc::sourcelist=${sources}`, 'Dir::Etc::sourceparts=-'],
      ...[`Dir::State=${root}`, `Dir::State::lists=${root}/lists`, `Dir::Cache=${root}/cache`],
      ...[`Dir::State::status=${root}/status`, `APT::Architecture=${DEBIAN_ARCH[arch]}`],
      ...[`APT::Architectures=${DEBIAN_ARCH[arch]}`, 'APT::Sandbox::User=root'],
      ...['Acquire::Languages=none', 'Acquire::Retries=3'],
      ...['DEP-11', 'DEP-11-icons', 'DEP-11-icons-small', 'CNF', 'Contents-deb'].map(
        (target) => `Acquire::IndexTargets::deb::${target}::DefaultEnabled=false`,
      ),
    ].flatMap((option) => ['-o', option]);
    this.#run('apt-get', ['update', '-qq']);
  }

  /** The fields that apt shows for the newest version of a package. */
  show(name) {
    const text = this.#run('apt-cache', ['show', '--no-all-versions', name]);
    return Object.fromEntries(
      text.split('\n').flatMap((line) => {
        const [, field, value] = /^([\w-]+): (.*)$/.exec(line) ?? [];
        return field === undefined ? [] : [[field, value]];
      }),
    );
  }

  /** Copies the matching files of a package into a folder. */
  extract(name, folder, patterns = ['*']) {
    const temporary = mkdtempSync(join(cacheFolder('apt'), 'download-'));
    try {
      this.#run('apt-get', ['download', '-qq', name], temporary);
      const [file] = readdirSync(temporary);
      mkdirSync(folder, { recursive: true });
      const archive = execFileSync('dpkg-deb', ['--fsys-tarfile', join(temporary, file)], {
        maxBuffer: 2 ** 31 - 1,
      });
      const args = ['-x', '-C', folder, '--no-same-owner', '--wildcards', ...patterns];
      execFileSync('tar', args, { input: archive });
    } finally {
      rmSync(temporary, { recursive: true });
    }
  }

  #run(command, args, cwd) {
    return execFileSync(command, [...this.#options, ...args], {
      cwd,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  }
}
