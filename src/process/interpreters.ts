import { basename } from 'node:path';

/** What an interpreter's command line makes it run. */
export type Script =
  /** A file, by the path as given. */
  | { kind: 'file'; path: string }
  /** Something with a name but no path: a Python module, a Java class. */
  | { kind: 'name'; name: string }
  /** The code is an argument or comes from stdin; or there is no interpreter. */
  | { kind: 'none' }
  /** One of these, but an unknown option comes first. */
  | { kind: 'unclear'; candidates: readonly string[] };

/** What an option does to the arguments that follow it. */
type Effect =
  | 'switch'
  /** The next argument is its value. */
  | 'value'
  /** There is no script: the code follows, or comes from stdin. */
  | 'no-script'
  /** The attached text, or else the next argument, names a module. */
  | { name: string | null }
  /** The attached text, or else the next argument, is the script. */
  | { file: string | null }
  | 'unknown';

/** How an interpreter parses its command line. */
interface Grammar {
  /** File names of its executable. */
  names: RegExp;
  effect: (option: string) => Effect;
  isOption?: (argument: string) => boolean;
  /** What a lone `-` does, unless it means "the script comes from stdin". */
  dash?: 'ends-options';
  /** What the first non-option argument is, if not a file. */
  operand?: (argument: string, options: readonly string[]) => Script;
}

const NODE_VALUES = words(`
  -r --require --import --loader --experimental-loader -C --conditions --env-file
  --env-file-if-exists --title --inspect-port --debug-port --input-type --icu-data-dir
  --openssl-config --tls-cipher-list --tls-keylog --redirect-warnings --report-dir
  --report-directory --report-filename --report-signal --diagnostic-dir --disable-warning
  --disable-proto --unhandled-rejections --dns-result-order --stack-trace-limit --trace-event-categories
  --trace-event-file-pattern --trace-require-module --heapsnapshot-signal --heapsnapshot-near-heap-limit
  --heap-prof-dir --heap-prof-name --heap-prof-interval --cpu-prof-dir --cpu-prof-name
  --cpu-prof-interval --experimental-default-type --experimental-sea-config --build-snapshot-config
  --snapshot-blob --policy-integrity --experimental-policy --secure-heap --secure-heap-min
  --localstorage-file --max-http-header-size --network-family-autoselection-attempt-timeout
  --watch-path --watch-kill-signal --experimental-config-file --inspect-publish-uid --use-largepages
  --v8-pool-size --allow-fs-read --allow-fs-write --es-module-specifier-resolution
`);
const NODE_SWITCHES = words(`
  -i -c -h --inspect --inspect-brk --inspect-wait --check --interactive --watch
  --watch-preserve-output --prof --cpu-prof --heap-prof --verify-base-objects
  --zero-fill-buffers --throw-deprecation --frozen-intrinsics --force-fips --insecure-http-parser
  --node-snapshot --report-compact --report-on-fatalerror --report-on-signal
  --report-uncaught-exception --permission --warnings --deprecation --jitless --entry-url
`);
/** Families of switches; V8 options take their values after `=`. */
const NODE_SWITCH_FAMILIES =
  /^--(no|trace|enable|experimental|expose|abort|preserve|pending|harmony|use|max|min|semi|stack|perf|tls-min|tls-max)-/;

const PHP_LONG_VALUES = words('--php-ini --define --docroot --zend-extension --server');
const JAVA_VALUES = words(`
  -cp -classpath --class-path -p --module-path --upgrade-module-path --add-modules --limit-modules
  --add-exports --add-opens --add-reads --patch-module --enable-native-access --source -d
  --describe-module
`);

const GRAMMARS: readonly Grammar[] = [
  {
    names: /^(node|nodejs)(-?\d[\d.]*)?$/,
    effect: (option) => {
      if (/^(-e|--eval|-p|-pe|--print|--test|--run)(=|$)/.test(option)) return 'no-script';
      if (NODE_VALUES.has(option)) return 'value';
      const isSwitch = NODE_SWITCHES.has(option) || NODE_SWITCH_FAMILIES.test(option);
      return isSwitch || option.includes('=') ? 'switch' : 'unknown';
    },
  },
  {
    names: /^(python|pypy)(\d[\d.]*)?[a-z]?$/,
    effect: clustered({ value: 'WXQ', code: 'c', name: 'm' }, ['--check-hash-based-pycs']),
  },
  {
    names: /^(r?bash|dash|ash|sh|[mo]?ksh(93)?|zsh|yash|posh)(-?\d[\d.]*)?$/,
    isOption: (argument) => /^[-+]./.test(argument),
    dash: 'ends-options',
    effect: (option) => {
      if (option.startsWith('--')) {
        return /^--(rcfile|init-file)$/.test(option) ? 'value' : 'switch';
      }
      if (option.startsWith('-') && /[cs]/.test(option)) return 'no-script';
      return /o$/i.test(option) ? 'value' : /o/i.test(option) ? 'unknown' : 'switch';
    },
  },
  {
    names: /^perl(5[\d.]*)?$/,
    effect: clustered({ value: 'I', attached: 'ixCDFMmVd', code: 'eE' }, []),
  },
  {
    names: /^j?ruby[\d.]*$/,
    effect: clustered({ value: 'IrCEX', attached: 'xi0FKTW', code: 'e' }, [
      ...['--encoding', '--external-encoding', '--internal-encoding', '--enable', '--disable'],
    ]),
  },
  {
    names: /^php([\d.]+)?$/,
    effect: (option) => {
      if (option.startsWith('--')) {
        if (option === '--file') return { file: null };
        if (/^--(run|process-(begin|code|end|file))(=|$)/.test(option)) return 'no-script';
        return PHP_LONG_VALUES.has(option) ? 'value' : option.includes('=') ? 'switch' : 'unknown';
      }
      if (/^-[rBRFES]/.test(option)) return 'no-script';
      if (option.startsWith('-f')) return { file: option.slice(2) || null };
      return /^-[cdtz]$/.test(option) ? 'value' : 'switch';
    },
  },
  {
    names: /^java$/,
    isOption: (argument) => /^[-@]./.test(argument),
    effect: (option) => {
      if (option.startsWith('@')) return 'unknown';
      if (option === '-m' || option === '--module') return { name: null };
      if (option.startsWith('--module=')) return { name: option.slice('--module='.length) };
      if (JAVA_VALUES.has(option)) return 'value';
      return option.startsWith('--') && !option.includes('=') ? 'unknown' : 'switch';
    },
    operand: (argument, options) =>
      options.includes('-jar') || argument.endsWith('.java')
        ? { kind: 'file', path: argument }
        : { kind: 'name', name: argument },
  },
];

/** The grammar of the interpreter with this file name or path. */
export function grammarOf(executable: string): Grammar | null {
  // argv[0] of a login shell is its name with a leading dash.
  const name = basename(executable).replace(/^-/, '');
  return GRAMMARS.find(({ names }) => names.test(name)) ?? null;
}

/** What an interpreter runs; `args` are its arguments without argv[0]. */
export function scriptOf(grammar: Grammar, args: readonly string[]): Script {
  const { effect, dash, operand } = grammar;
  const isOption = grammar.isOption ?? ((argument: string) => /^-./.test(argument));
  const script = (path: string | undefined, options: readonly string[]): Script =>
    path === undefined ? { kind: 'none' } : (operand?.(path, options) ?? { kind: 'file', path });
  for (let i = 0; i < args.length; i++) {
    const argument = args[i] ?? '';
    if (argument === '--') return script(args[i + 1], args.slice(0, i));
    if (argument === '-') {
      return dash === 'ends-options' ? script(args[i + 1], []) : { kind: 'none' };
    }
    if (!isOption(argument)) return script(argument, args.slice(0, i));
    const next = args[i + 1];
    const does = effect(argument);
    if (does === 'no-script') return { kind: 'none' };
    if (does === 'value') i++;
    else if (does === 'unknown') {
      // Without a following argument that could be its value, it does not matter.
      if (next === undefined || isOption(next)) continue;
      return { kind: 'unclear', candidates: args.slice(i + 1).filter((each) => !isOption(each)) };
    } else if (typeof does === 'object' && 'name' in does) {
      const name = does.name ?? next;
      return name === undefined ? { kind: 'none' } : { kind: 'name', name };
    } else if (typeof does === 'object') {
      const path = does.file ?? next;
      return path === undefined ? { kind: 'none' } : { kind: 'file', path };
    }
  }
  return { kind: 'none' };
}

/** Options of one letter, several of which can share one dash. */
function clustered(
  letters: {
    /** Takes a value: the rest of the argument, or else the next argument. */
    value: string;
    /** Takes the rest of the argument as its value. */
    attached?: string;
    code: string;
    name?: string;
  },
  longValues: readonly string[],
): (option: string) => Effect {
  return (option) => {
    if (option.startsWith('--')) {
      if (longValues.includes(option)) return 'value';
      return option.includes('=') || /^--(help|version|copyright)/.test(option)
        ? 'switch'
        : 'unknown';
    }
    for (let i = 1; i < option.length; i++) {
      const letter = option.charAt(i);
      const rest = option.slice(i + 1);
      if (letters.code.includes(letter)) return 'no-script';
      if (letters.name?.includes(letter) === true) return { name: rest === '' ? null : rest };
      if (letters.value.includes(letter)) return rest === '' ? 'value' : 'switch';
      if (letters.attached?.includes(letter) === true) return 'switch';
    }
    return 'switch';
  };
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/));
}
