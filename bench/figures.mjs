export function median(numbers) {
  const sorted = numbers.filter((number) => number !== null).sort((a, b) => a - b);
  if (sorted.length === 0) return null;
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

export function least(numbers) {
  const known = numbers.filter((number) => number !== null);
  return known.length === 0 ? null : Math.min(...known);
}

/** Formats rows of text and numbers as a table. The first row is the head. */
export function table(rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length)));
  return rows
    .map((row) =>
      row
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])))
        .join('  '),
    )
    .join('\n');
}

export function number(value, digits = 1) {
  return value === null || value === undefined ? '-' : value.toFixed(digits);
}
