import type { ConfiguredService } from '../../supervisor/index.js';

/** What another supervisor's configuration says that ours does not do. */
export interface LeftOut {
  /** What it belongs to; `null`: the whole. */
  service: string | null;
  option: string;
  reason: string;
}

/** What could be taken of another supervisor's configuration, and what could not. */
export interface Imported {
  services: ConfiguredService[];
  leftOut: LeftOut[];
}

/** Collects them. */
export class Import {
  readonly services: ConfiguredService[] = [];
  readonly leftOut: LeftOut[] = [];
  readonly #names = new Set<string>();

  add(service: ConfiguredService): void {
    this.services.push(service);
  }

  leave(service: string | null, option: string, reason: string): void {
    this.leftOut.push({ service, option, reason });
  }

  /** A name that is valid and that no other one has. */
  nameFor(wanted: string): string {
    const plain = wanted
      .replace(/[^A-Za-z0-9._@-]/g, '-')
      .replace(/^\.+/, '')
      .slice(0, 70);
    const base = plain === '' ? 'service' : plain;
    let name = base;
    for (let number = 2; this.#names.has(name); number++) name = `${base}-${number}`;
    this.#names.add(name);
    if (name !== wanted) this.leave(wanted, 'name', `it is ${JSON.stringify(name)} here`);
    return name;
  }

  get result(): Imported {
    return { services: this.services, leftOut: this.leftOut };
  }
}
