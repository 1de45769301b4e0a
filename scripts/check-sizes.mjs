// Part of npm run lint: a file of src/ or native/ with more than 300 lines must say at its top why
// it is one idea, in a comment that begins with `One idea:`. No class may have more than 20 fields.
// `check-sizes.mjs FOLDER` checks another checkout.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

import ts from 'typescript';

const MOST_LINES = 300;
const MOST_FIELDS = 20;

/** The mark and its sentence, which must be within the first TOP lines. */
const MARK = /^(\/\/|\/\*\*?| \*) One idea: \S.{20,}/;
const TOP = 8;

const root = process.argv[2] ?? '.';
const found = [];

for (const folder of ['src', 'native']) {
  for (const name of readdirSync(join(root, folder), { recursive: true })) {
    if (!/\.(ts|cc|h|c)$/.test(name)) continue;
    const file = join(folder, name);
    const text = readFileSync(join(root, file), 'utf8');
    checkLines(file, text.trimEnd().split('\n'));
    const classes = name.endsWith('.ts') ? classesOf(file, text) : nativeClassesOf(text);
    for (const [className, fields] of classes) {
      if (fields <= MOST_FIELDS) continue;
      found.push(
        `${file}: class ${className} has ${fields} fields; at most ${MOST_FIELDS} are allowed`,
      );
    }
  }
}

function checkLines(file, lines) {
  if (lines.length <= MOST_LINES) return;
  if (lines.slice(0, TOP).some((line) => MARK.test(line))) return;
  found.push(`${file} has ${lines.length} lines, but no "One idea: …" at its top explains why`);
}

/** Each class with its number of fields, including its constructor's parameter properties. */
function classesOf(file, text) {
  const classes = [];
  const visit = (node) => {
    if (ts.isClassLike(node)) {
      const fields = node.members.flatMap((member) => {
        if (ts.isPropertyDeclaration(member)) return [member];
        if (!ts.isConstructorDeclaration(member)) return [];
        return member.parameters.filter((parameter) =>
          ts.isParameterPropertyDeclaration(parameter, member),
        );
      });
      classes.push([node.name?.text ?? '', fields.length]);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true));
  return classes;
}

/** In the style of native/, a field of a class ends in an underscore, and a function does not. */
function nativeClassesOf(text) {
  const code = text.replace(/\/\/.*|"(\\.|[^"\\])*"|'(\\.|[^'\\])'/g, '');
  const classes = [];
  for (const match of code.matchAll(/\bclass (\w+)[^;{}()]*\{/g)) {
    const body = bodyAt(code, match.index + match[0].length);
    const fields = body
      .split(';')
      .filter((statement) => /\w_\s*(\[\w*\]\s*)?(=[^=]*)?$/.test(statement));
    classes.push([match[1], fields.length]);
  }
  return classes;
}

/** The text between these braces, without that in deeper ones. */
function bodyAt(code, start) {
  let depth = 1;
  let body = '';
  for (let at = start; at < code.length && depth > 0; at++) {
    const char = code[at];
    if (char === '}') depth--;
    if (depth === 1 && char !== '}') body += char === '{' ? '' : char;
    if (char === '{') depth++;
    // The end of a function's body ends a statement, like a semicolon.
    if (char === '}' && depth === 1 && /^\s*[^;,)\s]/.test(code.slice(at + 1))) body += ';';
  }
  return body;
}

for (const line of found) console.error(line);
if (found.length > 0) process.exit(1);
