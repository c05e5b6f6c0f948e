// About two seconds natively: objects, arrays, JSON, regular expressions, strings, Map, typed arrays.
'use strict';
const scale = Number(process.argv[2] || 10);
class Point { constructor(x, y) { this.x = x; this.y = y; } add(o) { return new Point(this.x + o.x, this.y + o.y); } }
function points(n) { let p = new Point(0, 0); const d = new Point(1, 3); for (let i = 0; i < n; i++) p = p.add(d); return p.x ^ p.y; }
function sieve(n) { const a = new Uint8Array(n); let c = 0; for (let i = 2; i < n; i++) { if (a[i]) continue; c++; for (let j = i * 2; j < n; j += i) a[j] = 1; } return c; }
function json(n) { let s = 0; for (let i = 0; i < n; i++) { const o = { a: i, b: [i, i + 1, i + 2], c: 'text' + i, d: { e: i / 2 } }; const t = JSON.parse(JSON.stringify(o)); s += t.b[2] + t.c.length; } return s; }
function regexps(n) { let s = 0; const r = /(\w+)@(\w+)\.(com|org)/g; const text = 'someone@example.com and another@place.org, nobody at all; x@y.z '.repeat(20); for (let i = 0; i < n; i++) { let m; r.lastIndex = 0; while ((m = r.exec(text)) !== null) s += m[1].length; } return s; }
function maps(n) { const m = new Map(); for (let i = 0; i < n; i++) m.set('k' + (i * 7919 % 10007), i); let s = 0; for (const [k, v] of m) s = (s * 31 + v + k.length) | 0; return s; }
function sorted(n) { const a = []; let x = 1; for (let i = 0; i < n; i++) { x = (x * 1103515245 + 12345) & 0x7fffffff; a.push(x); } a.sort((p, q) => p - q); return a[0] ^ a[n >> 1]; }
let out = 0;
for (let k = 0; k < scale; k++) {
  out = (out * 33 + points(400000)) | 0;
  out = (out * 33 + sieve(600000)) | 0;
  out = (out * 33 + json(20000)) | 0;
  out = (out * 33 + regexps(600)) | 0;
  out = (out * 33 + maps(60000)) | 0;
  out = (out * 33 + sorted(60000)) | 0;
}
console.log(out);
