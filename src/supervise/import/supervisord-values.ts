/** Names an option that is left out, and why. */
export type Leave = (option: string, reason: string) => void;

export type Expand = (option: string, text: string) => string;

/** `%(here)s`, `%(process_num)02d`, `%(ENV_HOME)s`, `%%`. */
export function expander(known: Record<string, string>, leave: Leave): Expand {
  return (option, text) =>
    text.replace(
      /%(?:%|\((\w+)\)(0?\d*)([sd]))/g,
      (found, name: string | undefined, width: string) => {
        if (name === undefined) return '%';
        const value = name.startsWith('ENV_')
          ? process.env[name.slice('ENV_'.length)]
          : Object.hasOwn(known, name)
            ? known[name]
            : undefined;
        if (value === undefined) {
          leave(option, `${found} is not known`);
          return found;
        }
        if (name.startsWith('ENV_')) {
          leave(option, `${found} is what it is now, in this environment: look who may read it`);
        }
        return value.padStart(Number(width), width.startsWith('0') ? '0' : ' ');
      },
    );
}

/** `KEY="value",KEY2=value`; a backslash is one. */
export function environmentOf(text: string | undefined, leave: Leave): Record<string, string> {
  const found: Record<string, string> = {};
  let rest = (text ?? '').trim();
  while (rest !== '') {
    const match = /^([^=\s,]+)\s*=\s*("[^"]*"|'[^']*'|[^,\s'"]*)\s*(?:,\s*|$)/.exec(rest);
    if (match === null) {
      leave('environment', `it cannot be read from ${JSON.stringify(rest.slice(0, 40))} on`);
      return found;
    }
    const [all, name = '', value = ''] = match;
    found[name] = value.replace(/^(["'])(.*)\1$/s, '$2');
    rest = rest.slice(all.length);
  }
  return found;
}
