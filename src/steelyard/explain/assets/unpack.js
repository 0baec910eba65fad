"use strict";
// The scripts of the page are packed (RFC 1951), and run as they were written: the
// page's policy has the hash of the text that comes out, and allows no other.
(() => {
  const holder = document.getElementById("code"), out = [];
  const bytes = Uint8Array.from(atob(holder.textContent.trim()), (letter) => letter.charCodeAt(0));
  let at = 0;
  const bits = (n) => {
    let value = 0;
    for (let k = 0; k < n; k++, at++) value |= ((bytes[at >> 3] >> (at & 7)) & 1) << k;
    return value;
  };
  const range = (n) => Array.from({ length: n }, (_, k) => k);
  // Codes in order of their length, then of their symbol.
  const tree = (lengths) => ({ counts: range(16).map((n) => lengths.filter((length) => length === n && n).length),
    symbols: range(lengths.length).filter((k) => lengths[k]).sort((a, b) => lengths[a] - lengths[b] || a - b) });
  function symbol({ counts, symbols }) {
    let code = 0, first = 0, index = 0;
    for (let n = 1; ; n++) {
      code |= bits(1);
      if (code - counts[n] < first) return symbols[index + code - first];
      index += counts[n];
      first = (first + counts[n]) << 1;
      code <<= 1;
    }
  }
  const starts = (extra, from) => extra.map((_, k) => extra.slice(0, k).reduce((sum, n) => sum + (1 << n), from));
  const lengthBits = range(29).map((k) => (k < 8 || k === 28 ? 0 : (k >> 2) - 1)), lengthFrom = starts(lengthBits, 3);
  lengthFrom[28] = 258;
  const backBits = range(30).map((k) => Math.max(0, (k >> 1) - 1)), backFrom = starts(backBits, 1);

  function trees() {
    const [n, m, few] = [bits(5) + 257, bits(5) + 1, bits(4) + 4], sizes = Array(19).fill(0), lengths = [];
    for (const k of [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15].slice(0, few)) sizes[k] = bits(3);
    const of = tree(sizes);
    while (lengths.length < n + m) {
      const s = symbol(of), again = s < 16 ? 1 : s === 16 ? 3 + bits(2) : s === 17 ? 3 + bits(3) : 11 + bits(7);
      const length = s < 16 ? s : s === 16 ? lengths[lengths.length - 1] : 0;
      for (let k = 0; k < again; k++) lengths.push(length);
    }
    return [tree(lengths.slice(0, n)), tree(lengths.slice(n))];
  }

  for (let isLast = 0; !isLast;) {
    isLast = bits(1);
    // Python packs long text in blocks of this kind alone.
    if (bits(2) !== 2) throw new Error("The page is damaged.");
    const [letters, backs] = trees();
    for (let s = symbol(letters); s !== 256; s = symbol(letters)) {
      if (s < 256) { out.push(s); continue; }
      const n = lengthFrom[s - 257] + bits(lengthBits[s - 257]), b = symbol(backs), back = backFrom[b] + bits(backBits[b]);
      for (let k = 0; k < n; k++) out.push(out[out.length - back]);
    }
  }
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(Uint8Array.from(out));
  document.body.append(script);
})();
