/** A section of a file of supervisord, with its options in order. */
export interface Section {
  name: string;
  options: Map<string, string>;
}

/**
 * Reads what supervisord reads: Python's ConfigParser with `;` and `#` for comments, behind a value after a
 * space, and lines that go on if they are indented.
 *
 * @throws Error with the number of the line
 */
export function parseIni(text: string): Section[] {
  const sections = new Map<string, Section>();
  let section: Section | null = null;
  let option: string | null = null;
  text.split(/\r?\n/).forEach((raw, at) => {
    const line = raw.replace(/(^|\s)[;#].*$/, '$1');
    if (line.trim() === '') return;
    const [, header] = /^\[([^\]]+)\]\s*$/.exec(line) ?? [];
    if (header !== undefined) {
      section = sections.get(header) ?? { name: header, options: new Map() };
      sections.set(header, section);
      option = null;
      return;
    }
    if (section === null) throw new Error(`line ${at + 1} is in no section`);
    if (/^\s/.test(line) && option !== null) {
      section.options.set(option, `${section.options.get(option) ?? ''}\n${line.trim()}`.trim());
      return;
    }
    const [, name, value = ''] = /^([^=:\s][^=:]*?)\s*[=:]\s*(.*)$/.exec(line) ?? [];
    if (name === undefined) throw new Error(`line ${at + 1} has no "=": ${line.trim()}`);
    option = name.trim().toLowerCase();
    section.options.set(option, value.trim());
  });
  return [...sections.values()];
}
