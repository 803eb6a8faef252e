"use strict";
// Fills the table of samples and their pages. Text from a transcript is set as textContent, never as markup.
(() => {
  const { by, rules, samples } = JSON.parse(document.getElementById("data").textContent);
  const PAGE = 25;
  const SVG = "http://www.w3.org/2000/svg";

  // make("td", {class: "who"}, "text", element) returns an element with attributes, text and children.
  function fill(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  }
  const make = (name, attributes = {}, ...children) => fill(document.createElement(name), attributes, children);
  const draw = (name, attributes = {}, ...children) => fill(document.createElementNS(SVG, name), attributes, children);
  const number = (n) => n.toLocaleString("en", { maximumFractionDigits: 2 });
  const percent = (share) => `${Math.round(100 * share)} %`;

  // Draws a text as a line, on which loops are in colour.
  function line(bands, height, label) {
    const rects = bands.map(([start, end]) =>
      draw("rect", { x: `${100 * start}%`, width: `${Math.max(100 * (end - start), 0.8)}%`, height, class: "loop", rx: 1 }));
    return draw("svg", { width: "100%", height, role: "img", "aria-label": label },
      draw("rect", { width: "100%", height, class: "text", rx: 1 }), ...rects);
  }

  const columns = [
    { key: "wasted", title: "wasted", number: true },
    { key: "id", title: "record" },
    { key: "rule", title: "rule" },
    { key: "share", title: "begins at", number: true },
    { key: "period", title: "period", number: true },
    { key: "copies", title: "copies", number: true },
    { key: "unit", title: "what repeats" },
  ];
  const state = { sort: "wasted", down: true, page: 0, text: "", rule: "", field: "" };
  // The keys by which samples are grouped: [name, function from a row to its value].
  const groups = by.length ? by.map((key, k) => [key, (row) => row.by[k]]) : [["file", (row) => row.file]];
  const named = (rule) => (rule ? [make("code", {}, rule), ` ${rules[rule]}`] : ["no loop"]);
  const hay = samples.map((row) =>
    [row.id, row.file, row.unit, ...row.by, ...row.groups.flat()].join("\n").toLowerCase());
  const collator = new Intl.Collator("en", { numeric: true });

  function chosen() {
    const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
    const rows = samples.map((_, i) => i).filter((i) => {
      const row = samples[i];
      return (!state.rule || row.rules.includes(state.rule)) && (!state.field || row.field === state.field) &&
        groups.every(([key, of]) => !state[`by ${key}`] || of(row) === state[`by ${key}`]) && words.every((word) => hay[i].includes(word));
    });
    const value = (i) => samples[i][state.sort];
    const order = columns.find((column) => column.key === state.sort).number
      ? (a, b) => value(a) - value(b)
      : (a, b) => collator.compare(value(a), value(b));
    return rows.sort((a, b) => (state.down ? -1 : 1) * order(a, b) || a - b);
  }

  let rows = [];
  const count = make("p", { class: "soft", role: "status" });
  const body = make("tbody");
  const previous = make("button", { type: "button" }, "← Previous");
  const next = make("button", { type: "button" }, "Next →");
  const headers = columns.map((column) => {
    const classes = { id: "who", rule: "rule", share: "where", unit: "words" }[column.key] ?? "figure number";
    const button = make("button", { type: "button" }, column.title);
    button.addEventListener("click", () => {
      state.down = state.sort === column.key ? !state.down : Boolean(column.number);
      state.sort = column.key;
      update();
    });
    return make("th", { scope: "col", class: classes }, button);
  });

  function tableRow(i) {
    const row = samples[i];
    const where = row.rule ? [line([row.band], 10, `begins at ${percent(row.share)}`)] : [];
    const element = make("tr", {},
      make("td", { class: "figure number", "data-label": "wasted" }, number(row.wasted)),
      make("td", { class: "who" }, make("a", { href: `#s${i}` }, row.id || "(no id)"),
        make("span", {}, by.length ? row.by.map((value) => value || "–").join(" / ") : `${row.file}, record ${row.record}`)),
      make("td", { class: "rule" }, ...named(row.rule)),
      make("td", { class: "where" }, ...where),
      make("td", { class: "figure number", "data-label": "period" }, row.rule ? number(row.period) : "–"),
      make("td", { class: "figure number", "data-label": "copies" }, row.rule ? `×${number(row.copies)}` : "–"),
      make("td", { class: "words" }, make("span", { class: "unit" }, row.unit)));
    element.addEventListener("click", () => { location.hash = `s${i}`; });
    return element;
  }

  function show() {
    const pages = Math.max(1, Math.ceil(rows.length / PAGE));
    state.page = Math.min(state.page, pages - 1);
    const from = state.page * PAGE;
    const some = rows.slice(from, from + PAGE);
    body.replaceChildren(...some.map(tableRow));
    count.textContent = rows.length
      ? `${number(from + 1)}–${number(from + some.length)} of ${number(rows.length)}` : "Nothing matches.";
    previous.disabled = state.page === 0;
    next.disabled = state.page >= pages - 1;
  }

  function update() {
    rows = chosen();
    state.page = 0;
    headers.forEach((header, i) => {
      if (columns[i].key === state.sort) header.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else header.removeAttribute("aria-sort");
    });
    phoneSort.value = state.sort;
    show();
  }

  function choice(label, key, options) {
    const select = make("select", { "aria-label": label },
      make("option", { value: "" }, label), ...options.map(([value, text]) => make("option", { value }, text)));
    select.addEventListener("change", () => { state[key] = select.value; update(); });
    return select;
  }

  const distinct = (values) => [...new Set(values)].sort(collator.compare);
  const search = make("input", { type: "search", placeholder: "Search id, file, group, what repeats", "aria-label": "Search samples" });
  search.addEventListener("input", () => { state.text = search.value; update(); });
  const phoneSort = make("select", { "aria-label": "Sort by", class: "by-phone" },
    ...columns.map((column) => make("option", { value: column.key }, `sorted by ${column.title}`)));
  phoneSort.addEventListener("change", () => {
    state.sort = phoneSort.value;
    state.down = Boolean(columns.find((column) => column.key === state.sort).number);
    update();
  });
  const tools = [search];
  const codes = distinct(samples.flatMap((row) => row.rules));
  const fields = distinct(samples.map((row) => row.field).filter(Boolean));
  if (codes.length > 1) tools.push(choice("every rule", "rule", codes.map((code) => [code, `${code} ${rules[code]}`])));
  if (fields.length > 1) tools.push(choice("every field", "field", fields.map((name) => [name, name])));
  for (const [key, of] of groups) {
    const names = distinct(samples.map(of));
    if (names.length > 1 && names.length <= 500) {
      tools.push(choice(`every ${key}`, `by ${key}`, names.filter(Boolean).map((name) => [name, name])));
    }
  }
  tools.push(phoneSort);
  previous.addEventListener("click", () => { state.page -= 1; show(); });
  next.addEventListener("click", () => { state.page += 1; show(); });
  if (samples.length) {
    document.getElementById("table").append(
      make("div", { class: "tools", role: "search" }, ...tools),
      make("table", { class: "samples" },
        make("caption", { class: "hidden" }, "Samples; a record's link opens its text"),
        make("thead", {}, make("tr", {}, ...headers)), body),
      make("div", { class: "pager" }, previous, count, next));
    update();
  }

  // The page of one sample.
  const dialog = document.getElementById("page");

  function strip(field) {
    const height = 44;
    const last = field.news.length - 1;
    const curve = field.news.map((share, i) => `L${(100 * i) / last} ${height - 1 - (height - 4) * share}`).join("");
    const area = draw("path", { d: `M0 ${height}${curve}L100 ${height}Z` });
    const shade = field.bands.map(([start, end]) =>
      draw("rect", { x: `${100 * start}%`, width: `${Math.max(100 * (end - start), 0.5)}%`, height, class: "interval loop" }));
    return make("div", { class: "strip" },
      draw("svg", { width: "100%", height, role: "img", "aria-label": "how much of the text is new along it, loops shaded" },
        draw("rect", { width: "100%", height, class: "text" }), ...shade,
        draw("svg", { viewBox: `0 0 100 ${height}`, preserveAspectRatio: "none", width: "100%", height }, area)),
      make("p", { class: "soft" }, "How much of the text is new to zlib, given the 32 KiB before it; loops are shaded"));
  }

  function piece([kind, text]) {
    if (kind === "text") return text;
    if (kind === "cut") return make("span", { class: "cut" }, `… ${number(text)} characters are not shown …`);
    return make("mark", { class: kind }, text);
  }

  function fieldOf(field) {
    const parts = [make("header", {}, make("h3", {}, field.name), make("span", { class: "soft" }, `${number(field.length)} characters`))];
    if (!field.length) return make("section", { class: "field" }, ...parts, make("p", { class: "soft" }, "There is no text to show."));
    if (field.news.length) parts.push(strip(field));
    parts.push(make("div", { class: "piece", tabindex: "0", role: "region", "aria-label": `${field.name}, text` }, ...field.pieces.map(piece)));
    return make("section", { class: "field" }, ...parts);
  }

  function findings(page) {
    if (!page.findings.length) return make("p", { class: "soft" }, "Nothing in this text counts as a loop.");
    const head = ["rule", "field", "level", "characters", "period", "copies", "wasted"].map((title) => make("th", { scope: "col" }, title));
    const lines = page.findings.map((f) => make("tr", {},
      make("td", {}, ...named(f.rule)), make("td", {}, f.field), make("td", {}, f.level),
      make("td", {}, `${number(f.start)} – ${number(f.end)}`), make("td", {}, number(f.period)),
      make("td", {}, `×${number(f.copies)}`), make("td", {}, number(f.wasted))));
    const more = page.more ? [make("p", { class: "soft" }, `… and ${number(page.more)} more`)] : [];
    return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "findings" },
      make("table", { class: "found" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines)), ...more);
  }

  const legend = () => make("p", { class: "legend soft" }, make("span", {}, make("mark", { class: "first" }, "first copy")),
    make("span", {}, make("mark", { class: "copy" }, "further"), make("mark", { class: "other" }, "copies")));

  function open(i) {
    const row = samples[i];
    const page = JSON.parse(document.getElementById(`t${i}`).textContent);
    const at = rows.indexOf(i);
    const step = (by_, label, name) => {
      const button = make("button", { type: "button", "aria-label": name }, label);
      button.disabled = at < 0 || rows[at + by_] === undefined;
      button.addEventListener("click", () => go(by_));
      return button;
    };
    const close = make("button", { type: "button" }, "Close");
    close.addEventListener("click", () => dialog.close());
    const jump = make("button", { type: "button" }, "To the loop");
    jump.disabled = !row.rule;
    jump.addEventListener("click", () => dialog.querySelector(".piece mark")?.scrollIntoView({ block: "center" }));
    const title = make("h2", { id: "page-title", tabindex: "-1", autofocus: "" }, row.id || "(no id)");
    dialog.replaceChildren(
      make("div", { class: "bar-top" }, step(-1, "←", "Previous sample"), step(1, "→", "Next sample"),
        make("span", { class: "soft" }, at < 0 ? "" : `${number(at + 1)} of ${number(rows.length)}`), jump, close),
      title,
      make("p", { class: "soft" }, `${row.file}, record ${row.record}; ${number(row.wasted)} tokens wasted`),
      make("ul", { class: "chips" }, ...row.groups.map(([key, value]) => make("li", {}, make("b", {}, `${key} `), value))),
      findings(page), ...(row.rule ? [legend()] : []),
      ...page.fields.map(fieldOf));
    if (!dialog.open) dialog.showModal();
    dialog.scrollTop = 0;
    dialog.dataset.at = at;
  }

  function go(by_) {
    const i = rows[Number(dialog.dataset.at) + by_];
    if (i !== undefined) location.replace(`#s${i}`);
  }

  function follow() {
    const match = /^#s(\d+)$/.exec(location.hash);
    if (match && samples[match[1]]) open(Number(match[1]));
    else if (dialog.open) dialog.close();
  }

  dialog.addEventListener("close", () => history.replaceState(null, "", "#"));
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowLeft") go(-1);
    if (event.key === "ArrowRight") go(1);
  });
  addEventListener("hashchange", follow);
  follow();
  document.documentElement.dataset.ready = Math.round(performance.now()); // bench/report.py and the tests read this value
})();
