import { padEnd, textWidth, wrap } from './terminal-text.js';

/** The columns of the table, in order. */
export const COLUMNS = ['TIME', 'PID', 'PARENT', 'UID', 'NAME', 'LIVED', 'HOW', 'BY'] as const;

export type Cells = Record<(typeof COLUMNS)[number], string>;

/** Which columns there are and how wide; BY comes last and gets the rest. */
interface Layout {
  gap: string;
  widths: Partial<Record<(typeof COLUMNS)[number], number>>;
}

/** NAME fits every kernel name, HOW most outcomes. */
const WIDE: Layout = {
  gap: '  ',
  widths: { TIME: 12, PID: 7, PARENT: 7, UID: 5, NAME: 15, LIVED: 7, HOW: 16 },
};

/** The first layout that leaves room for BY is used. */
const LAYOUTS: readonly Layout[] = [
  WIDE,
  { gap: ' ', widths: { TIME: 8, PID: 7, PARENT: 7, UID: 5, NAME: 15, LIVED: 6, HOW: 15 } },
  { gap: ' ', widths: { TIME: 8, PID: 7, PARENT: 7, NAME: 15, LIVED: 6, HOW: 15 } },
  { gap: ' ', widths: { TIME: 8, PID: 7, NAME: 15, LIVED: 6, HOW: 15 } },
  { gap: ' ', widths: { TIME: 8, PID: 7, NAME: 11, HOW: 14 } },
  { gap: ' ', widths: { PID: 7, NAME: 11, HOW: 14 } },
];

const NARROWEST: Layout = { gap: ' ', widths: { PID: 7, HOW: 14 } };

/** The width wanted for BY, and the least it gets. */
const LEAST_BY = 22;
const LEAST = 12;

/** Numbers: one that does not fit is not wrapped, but takes room from BY. */
const RIGHT: readonly string[] = ['PID', 'PARENT', 'UID', 'LIVED'];

/**
 * Lays out rows for a terminal with this many columns. On a narrow one, it shortens times and drops
 * columns; text that does not fit continues on the next line. `undefined`: no terminal, and no
 * limit.
 */
export class TableLayout {
  readonly #layout: Layout;
  readonly #by: number;
  /** A full time fits. */
  readonly hasMilliseconds: boolean;

  /** `hasCommands`: NAME has command lines, and gets more room. */
  constructor(columns: number | undefined, hasCommands = false) {
    const widthOf = ({ widths, gap }: Layout) =>
      Object.values(widths).reduce((sum, width) => sum + width + gap.length, 0);
    const fits = (layout: Layout) => columns === undefined || widthOf(layout) + LEAST_BY <= columns;
    const fitsBarely = (layout: Layout) => widthOf(layout) + LEAST <= (columns ?? Infinity);
    const layout = LAYOUTS.find(fits) ?? LAYOUTS.findLast(fitsBarely) ?? NARROWEST;
    const spare = hasCommands && columns !== undefined ? columns - widthOf(layout) - LEAST_BY : 0;
    const more = Math.max(0, Math.floor(spare / 2));
    const { widths } = layout;
    const { NAME } = widths;
    const room = NAME === undefined ? {} : { NAME: NAME + more };
    this.#layout = { ...layout, widths: { ...widths, ...room } };
    this.hasMilliseconds = layout === WIDE;
    this.#by = columns === undefined ? Infinity : Math.max(LEAST, columns - widthOf(this.#layout));
  }

  /** The first of these texts that fits into one line of its column; the last one, cut off, if none does. */
  fitting(column: keyof Cells, texts: readonly string[]): string {
    const found = texts.find((text) => this.fits(column, text));
    return found ?? this.#cut(column, texts.at(-1) ?? '');
  }

  #cut(column: keyof Cells, text: string): string {
    const width = this.#layout.widths[column] ?? this.#by;
    let shown = '';
    for (const character of text) {
      if (textWidth(shown + character) > width - 1) break;
      shown += character;
    }
    return `${shown}…`;
  }

  /** The text fits into one line of its column. */
  fits(column: keyof Cells, text: string): boolean {
    return this.#by === Infinity || textWidth(text) <= (this.#layout.widths[column] ?? this.#by);
  }

  header(): string {
    const cells = Object.fromEntries(COLUMNS.map((column) => [column, column]));
    return this.row(cells as Cells);
  }

  row(cells: Cells): string {
    const { widths, gap } = this.#layout;
    const columns = COLUMNS.filter((column) => column === 'BY' || widths[column] !== undefined);
    const widthOf = (column: keyof Cells) => {
      const width = widths[column] ?? 0;
      return RIGHT.includes(column) ? Math.max(width, textWidth(cells[column])) : width;
    };
    const more = columns.reduce((sum, column) => sum + widthOf(column) - (widths[column] ?? 0), 0);
    const by = Math.max(1, this.#by - more);
    const parts = columns.map((column) =>
      by === Infinity ? [cells[column]] : wrap(cells[column], widthOf(column) || by),
    );
    const height = Math.max(...parts.map((lines) => lines.length));
    return Array.from({ length: height }, (_, line) =>
      columns
        .map((column, index) => align(column, parts[index]?.[line] ?? '', widthOf(column)))
        .join(gap)
        .trimEnd(),
    ).join('\n');
  }
}

function align(column: string, text: string, width: number): string {
  if (!RIGHT.includes(column)) return padEnd(text, width);
  return ' '.repeat(Math.max(0, width - textWidth(text))) + text;
}
