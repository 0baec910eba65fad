"use strict";
// Where values come from and go: a typical case, rows of a file or of the clipboard, links.
const cases = (() => {
  const { byId, data, option, setParts, shownOf, signed, t, texts } = controls;
  const { attributes, classes, model } = data;
  const columns = data.order.filter((j) => attributes[j].kind !== "interaction");
  let rows = (data.rows && data.rows.cells) || [], names = null, raw = null, put = null, current = null, pinCase = null;

  // The middle of every number, the commonest of every category.
  const typical = () => attributes.map((own) => {
    if (own.kind === "number") {
      const middle = own.quartiles && own.quartiles.length ? own.quartiles[1] : (own.low + own.high) / 2;
      return own.whole ? Math.round(middle) : Number(middle.toPrecision(4));
    }
    return own.kind === "category" && own.shares ? own.values[own.shares.indexOf(Math.max(...own.shares))] : null;
  });

  // Lines of cells; what stands between them is what the first line has most of.
  function parse(text) {
    const first = text.split(/\r?\n/, 1)[0].replace(/"[^"]*"/g, "");
    const separator = [",", ";", "\t", "|"].reduce((a, b) => (first.split(b).length > first.split(a).length ? b : a));
    const lines = [];
    let line = [], cell = "", isQuoted = false;
    const end = () => { line.push(cell); cell = ""; };
    for (let k = 0; k < text.length; k++) {
      const c = text[k];
      if (isQuoted) {
        if (c !== '"') cell += c; else if (text[k + 1] === '"') { cell += c; k++; } else isQuoted = false;
      } else if (c === '"') isQuoted = true;
      else if (c === separator) end();
      else if (c === "\n") { end(); lines.push(line); line = []; } else if (c !== "\r") cell += c;
    }
    if (cell || line.length) { end(); lines.push(line); }
    return { separator, lines: lines.filter((cells) => cells.some((own) => own.trim())) };
  }

  const MISSING = new Set(["", "?", "na", "nan", "null", "none", "n/a", "unknown"]);
  // A cell as the model takes it: null for what is missing or was never seen.
  function read(own, text, isComma = false) {
    const plain = String(text ?? "").trim();
    if (own.kind === "category") {
      let at = own.labels.indexOf(plain);
      if (at < 0 && own.shown) at = own.shown.indexOf(plain);
      if (at < 0 && plain !== "" && Number.isFinite(Number(plain))) at = own.values.findIndex((value) => typeof value === "number" && value === Number(plain));
      if (at < 0) at = own.labels.findIndex((label) => label.toLowerCase() === plain.toLowerCase());
      return at < 0 ? null : own.values[at];
    }
    if (MISSING.has(plain.toLowerCase())) return null;
    if (own.flag && shownOf(own).includes(plain)) return own.values[shownOf(own).indexOf(plain)];
    const x = own.date ? texts(own).read(plain) : Number(isComma ? plain.replace(",", ".") : plain);
    return Number.isFinite(x) ? x : null;
  }

  const called = (cell) => attributes.findIndex((own) => own.kind !== "interaction" && [own.name, own.title].includes(cell.trim()));

  // The text from the line of names on: titles stand above it.
  const MOST_TITLES = 50;
  function belowTitles(text) {
    const lines = text.split("\n", MOST_TITLES);
    const counts = lines.map((line) => Math.max(...[",", ";", "\t", "|"].map((mark) => line.split(mark).filter((cell) => called(cell.trim().replace(/^"(.*)"$/, "$1")) >= 0).length)));
    const k = counts.indexOf(Math.max(...counts));
    return k && 2 * counts[k] >= columns.length ? text.split("\n").slice(k).join("\n") : text;
  }

  // Text that is not UTF-8 is nearly always that of Windows.
  function decoded(bytes) {
    try { return new TextDecoder("utf-8", { fatal: true }).decode(bytes); } catch { return new TextDecoder("windows-1252").decode(bytes); }
  }

  function take(text) {
    const { separator, lines } = parse(belowTitles(text));
    if (!lines.length) return t("No rows found.");
    const places = lines[0].map(called), hasNames = places.some((j) => j >= 0);
    if (!hasNames && lines[0].length < columns.length) {
      return t("Without column names a row needs {n} cells, in the order of the table; it has {m}.", { n: columns.length, m: lines[0].length });
    }
    const of = hasNames ? places : lines[0].map((_, k) => (k < attributes.length && attributes[k].kind !== "interaction" ? k : -1));
    raw = hasNames ? lines.slice(1) : lines;
    names = hasNames ? lines[0] : of.map((j, k) => (j < 0 ? `x${k}` : attributes[j].name));
    rows = raw.map((cells) => {
      const found = attributes.map(() => null);
      of.forEach((j, k) => { if (j >= 0) found[j] = read(attributes[j], cells[k], separator !== ","); });
      for (const j of columns) if (attributes[j].date && found[j] !== null) setParts(attributes[j], found[j], found, attributes);
      return found;
    });
    fill();
    if (!rows.length) return t("No rows found.");
    go(0);
    byId("download").hidden = false;
    const missing = columns.filter((j) => !of.includes(j)).length;
    return `${rows.length === 1 ? t("1 row loaded.") : t("{n} rows loaded.", { n: rows.length })} ${missing ? t("{n} columns are not in it.", { n: missing }) : ""}`;
  }

  // ------------------------------------------------------------------------ stepping

  const MOST = 1000;
  function fill() {
    byId("stepper").hidden = !rows.length;
    byId("case").replaceChildren(option("", t("Row …")), ...rows.slice(0, MOST).map((_, k) => option(k, t("Row {n} of {m}", { n: k + 1, m: rows.length }))));
  }
  function go(k) {
    if (!(k >= 0 && k < rows.length)) return;
    byId("case").value = String(k);
    put(rows[k]);
  }

  // --------------------------------------------------------- answers to all rows, as CSV

  // A value as files have it.
  const inFile = (own, value) => (value === null ? t("unknown") : own.kind === "category" ? (own.shown || own.labels)[own.values.indexOf(value)] : texts(own).text(value));
  const quoted = (cell) => (/[",\n\r;]/.test(cell) ? `"${String(cell).replaceAll('"', '""')}"` : String(cell));
  function answered() {
    const header = [...names, "prediction", ...data.fields.map((name) => `p_${name}`), "reason_1", "reason_2", "reason_3"];
    const lines = rows.map((row, k) => {
      // As in Python: for the most probable class, of missing cells and of interactions too.
      const p = scoring.posterior(model, row), { first, amounts } = scoring.reasons(model, row, attributes.length);
      const best = amounts.map((amount, j) => ({ amount, j })).filter(({ amount }) => amount)
        .sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount)).slice(0, 3);
      const cell = (j) => (attributes[j].sides || [{ column: j }]).map(({ column }) => inFile(attributes[column], row[column])).join(", ");
      const reasons = best.map(({ amount, j }) => `${attributes[j].title} = ${cell(j)} (${signed(amount)} ${t("for {name}", { name: classes[first] })})`);
      return [...names.map((_, i) => raw[k][i] ?? ""), classes[scoring.winner(model, row)], ...p, ...reasons].map(quoted).join(",");
    });
    return [header.map(quoted).join(","), ...lines].join("\n");
  }
  function save(name, text, type = "text/csv") {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // ------------------------------------------------------------------------- the link

  // Values are in the address after the #, by name, then those of a pinned case: a link to
  // them can be kept.
  let written = null, kept = null;
  const textAfter = (values) => {
    const link = new URLSearchParams();
    attributes.forEach((own, j) => {
      if (values[j] === null) return;
      link.append(own.name, own.kind === "category" ? own.labels[own.values.indexOf(values[j])] : String(values[j]));
    });
    return String(link);
  };
  function writeLink(values, pinned) {
    kept = pinned;
    const text = textAfter(values) + (pinned === null ? "" : `|${textAfter(pinned)}`);
    written = text ? `#${text}` : "";
    if (location.hash === written) return;
    // A frame in a notebook has no address to write to.
    try { history.replaceState(null, "", written || location.pathname + location.search); } catch { written = location.hash; }
  }
  function valuesIn(text) {
    const link = new URLSearchParams(text);
    return attributes.map((own) => {
      const cell = own.kind === "interaction" ? null : link.get(own.name);
      if (cell === null || cell.trim() === "") return null;
      const at = own.kind === "category" ? own.labels.indexOf(cell) : -1, x = Number(cell);
      return own.kind === "category" ? (at < 0 ? null : own.values[at]) : Number.isFinite(x) ? x : null;
    });
  }
  function readLink() {
    if (location.hash === written) return;
    const [now, pinned] = location.hash.slice(1).split("|");
    put(valuesIn(now));
    if (pinned !== undefined) pinCase(valuesIn(pinned));
  }
  async function copyLink() {
    try {
      await navigator.clipboard.writeText(location.href);
      byId("copied").textContent = t("Copied.");
    } catch {
      byId("copied").textContent = t("The address of this page is the link.");
    }
  }

  function connect(values, setAll, pin) {
    [current, put, pinCase] = [values, setAll, pin];
    const tell = (text) => { byId("copied").textContent = text; };
    const at = () => (byId("case").value === "" ? -1 : Number(byId("case").value));
    byId("typical").addEventListener("click", () => put(typical()));
    byId("previous").addEventListener("click", () => go(at() < 0 ? 0 : at() - 1));
    byId("following").addEventListener("click", () => go(at() + 1));
    byId("case").addEventListener("change", () => go(at()));
    byId("bring").addEventListener("click", () => {
      byId("bringing").hidden = !byId("bringing").hidden;
      byId("bring").setAttribute("aria-expanded", String(!byId("bringing").hidden));
      if (!byId("bringing").hidden) byId("paste").focus();
    });
    byId("read").addEventListener("click", () => tell(take(byId("paste").value)));
    byId("file").addEventListener("change", async () => { if (byId("file").files.length) tell(take(decoded(await byId("file").files[0].arrayBuffer()))); });
    byId("download").addEventListener("click", () => save("answers.csv", answered()));
    byId("copy").addEventListener("click", () => { writeLink(current, kept); copyLink(); });
    window.addEventListener("dragover", (event) => event.preventDefault());
    window.addEventListener("drop", async (event) => {
      event.preventDefault();
      if (!event.dataTransfer.files.length) return;
      byId("bringing").hidden = false;
      tell(take(decoded(await event.dataTransfer.files[0].arrayBuffer())));
    });
    window.addEventListener("hashchange", readLink);
    fill();
  }

  return { answered, connect, decoded, readLink, save, take, writeLink };
})();
