import { lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';

const FOLDER = 0o040000;
const FILE = 0o100000;
const LINK = 0o120000;
const DEVICE = 0o020000;

/** An initramfs: a cpio archive in the kernel's format ("newc"), in which root owns everything. */
export class Initramfs {
  #parts = [];
  #known = new Set(['/', '.']);

  folder(path, mode = 0o755) {
    if (this.#known.has(path)) return;
    this.folder(dirname(path));
    this.#add(path, FOLDER | mode);
  }

  file(path, data, mode = 0o644) {
    this.folder(dirname(path));
    this.#add(path, FILE | mode, Buffer.from(data));
  }

  link(path, target) {
    this.folder(dirname(path));
    this.#add(path, LINK | 0o777, Buffer.from(target));
  }

  device(path, major, minor) {
    this.folder(dirname(path));
    this.#add(path, DEVICE | 0o600, Buffer.alloc(0), [major, minor]);
  }

  /**
   * Adds a file of the host with its mode and the target of its link, or a folder with its
   * contents.
   */
  copy(source, path, wants = () => true) {
    const status = lstatSync(source);
    if (status.isSymbolicLink()) this.link(path, readlinkSync(source));
    else if (status.isFile()) this.file(path, readFileSync(source), status.mode & 0o777);
    else if (status.isDirectory()) {
      this.folder(path);
      for (const name of readdirSync(source))
        if (wants(join(source, name))) this.copy(join(source, name), join(path, name), wants);
    }
  }

  toBuffer() {
    const end = entry('TRAILER!!!', 0, 0, Buffer.alloc(0), [0, 0]);
    return Buffer.concat([...this.#parts, ...end]);
  }

  #add(path, mode, data = Buffer.alloc(0), device = [0, 0]) {
    if (this.#known.has(path)) return;
    this.#known.add(path);
    this.#parts.push(...entry(path.slice(1), mode, this.#known.size, data, device));
  }
}

function entry(name, mode, inode, data, [major, minor]) {
  const links = (mode & FOLDER) === FOLDER ? 2 : 1;
  const fields = [inode, mode, 0, 0, links, 0, data.length, 0, 0, major, minor, name.length + 1, 0];
  const hex = fields.map((field) => field.toString(16).padStart(8, '0')).join('');
  return [padded(Buffer.from(`070701${hex}${name}\0`)), padded(data)];
}

/** Pads to a multiple of four bytes. */
function padded(data) {
  const missing = -data.length & 3;
  return missing === 0 ? data : Buffer.concat([data, Buffer.alloc(missing)]);
}
